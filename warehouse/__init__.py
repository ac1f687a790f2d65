"""The evidence: record schemas, artifact store, Parquet, contract, DuckDB, views.

What was measured is stored here and judged here, in SQL, and nowhere else. The
training system (`model/`) is unknown to this folder, and so is the workflow engine.

One word per concept, the same in Python, Parquet and SQL:

stage        a node of the DAG, such as `train_model`.
program      the JAX side of a stage, a child process that reads and writes files.
run          one execution of a flow; it links each stage to an execution.
execution    one real computation of a stage, named by its key and a nonce; a run
             may reuse one that an earlier run made.
key          the SHA-256 of everything that decides what a stage computes.
nonce        the random name of one execution; never part of a key.
commit       the small JSON file that is written last and makes an execution count.
artifact     a file named by the SHA-256 of its content.
record       a typed row of evidence; its class declares the columns, their meaning
             and when they may be null.
claim        one statement of `contract/`, held against measurements.
requirement  one measure of a claim with its relation, limit, cases and reason.
contract     all claims that are required, as data.
case         one instance of a measure, such as a cache policy at one length.
subject      what a verdict is about: the digests of system, configuration, data and
             runtime.
verdict      accept, accept (undrilled), revise, or not demonstrated.
drill        running the checks on a system with one planted fault; its result is the
             calibration of a claim.
damage       a stored file whose bytes are not the committed ones any more.
reason       a code of the closed list in `reasons.py`: why a value is null or what a
             refusal says.

Where to look: `records/` declares the tables, `store.py` keeps files, `load.py` brings
verified evidence into DuckDB, `views/` asks the questions, `query.py` answers yours.
"""
