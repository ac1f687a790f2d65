"""A store as it is after years: thousands of runs, written without waiting for a disk.

    python -m tests.bench.many_runs 2000             made-up stages of a few rows
    python -m tests.bench.many_runs 100 --like ROOT  copies of the newest run there

says how long `harness sql` takes for some questions, and each view in a store that is
open already. Most runs reuse what an earlier one made, some compute again, some fail,
some are killed, and the source changes now and then. Only times mean anything here:
every execution holds the same rows.
"""

import argparse
import dataclasses
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from warehouse.commits import Commit, EvidenceFile
from warehouse.evidence import to_parquet
from warehouse.load import open_warehouse
from warehouse.records.claims import Measurement
from warehouse.records.inference import Timing
from warehouse.runs import RunFinish, RunStart, StageLink, utc_text
from warehouse.sealed import seal
from warehouse.store import FORMAT, Store
from warehouse.view_files import read_views

DAY_NS = 86_400 * 10**9
FIRST_NS = 1_600_000_000 * 10**9
STAGES = (
    *("tokenize_corpus", "train_model", "interrupt_training", "resume_training"),
    *("evaluate_heldout", "quantize_cache", "export_endpoints", "profile_runtime"),
    "qualify_tpu",
)
COMPONENTS = 110
RUNS_OF_A_SYSTEM = 20
ENDINGS = {7: "failed", 11: "interrupted", 13: ""}
"""Number of a run modulo 17 to how it ended, where not well; empty: it was killed."""
QUERIES = (
    "select count(*) from runs",
    "select verdict, count(*) from verdicts group by all order by all",
    "select * from claim_trends order by run_started_at desc limit 5",
)


@dataclasses.dataclass(frozen=True)
class Model:
    """An execution that the store gets many copies of."""

    commit: Commit
    files: dict[str, bytes]
    """Name of the table to the bytes of its file."""


def made_up(stage: str) -> Model:
    """Returns a small execution of a stage."""
    cases = [
        Measurement(
            claim="1.5",
            measure="heldout_nats_per_token",
            case_name=f"case-{case}",
            value_real=1.0 + case,
            unit="nats",
        )
        for case in range(4)
    ]
    files = {"measurements": (len(cases), to_parquet(Measurement, cases))}
    if stage == "profile_runtime":
        samples = [
            Timing(
                endpoint="decode",
                release_policy="fp32",
                process=1 + sample % 3,
                process_id=1 + sample % 3,
                sample=sample,
                phase="warm",
                duration_ns=10**6 + sample,
                timer="made up",
            )
            for sample in range(30)
        ]
        files["timings"] = (len(samples), to_parquet(Timing, samples))
    listed = [
        EvidenceFile(
            table=table,
            sha256=hashlib.sha256(data).hexdigest(),
            bytes=len(data),
            rows=rows,
        )
        for table, (rows, data) in files.items()
    ]
    commit = Commit(
        stage=stage,
        key="",
        nonce="",
        components={
            **{f"source:model.module_{n}": "" for n in range(COMPONENTS)},
            # what decides how its files are shaped
            **{f"source:warehouse.records.{n}": "1" for n in ("claims", "inference")},
            "source:warehouse.schema": "1",
        },
        artifacts=(),
        files=tuple(listed),
        reason="",
        started_at="",
        finished_at="",
        committed_at="",
        host="",
    )
    return Model(commit, {table: data for table, (_, data) in files.items()})


def models_of(root: Path) -> list[Model]:
    """Returns the newest execution of every stage of a real store."""
    store = Store(root, is_writable=False)
    newest = {commit.stage: commit for commit in store.commits()}
    return [
        Model(
            commit,
            {
                file.table: store.evidence_file(commit.nonce, file.table).read_bytes()
                for file in commit.files
            },
        )
        for commit in newest.values()
    ]


def write_store(root: Path, models: list[Model], runs: int, every: int = 4) -> None:
    """Fills a folder with runs of these stages, the oldest first, one a day."""
    links: list[StageLink] = []
    for run in range(runs):
        if run % every == 0:
            links = [_execute(root, model, run) for model in models]
        else:
            links = [
                dataclasses.replace(link, state="reused", reason="") for link in links
            ]
        _write_run(root, links, run)
    for folder in ("artifacts", "executions", "records", "runs", "temporary"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def _execute(root: Path, model: Model, run: int) -> StageLink:
    system = run // RUNS_OF_A_SYSTEM
    stage, start_ns = model.commit.stage, FIRST_NS + run * DAY_NS
    changed = next(iter(model.commit.components))
    commit = dataclasses.replace(
        model.commit,
        key=f"{system:064x}",
        nonce=hashlib.md5(f"{stage} {run}".encode()).hexdigest(),
        components={**model.commit.components, changed: f"{system:064x}"},
        artifacts=(),
        reason=f"source changed: {changed}",
        started_at=utc_text(start_ns),
        finished_at=utc_text(start_ns + 10**9),
        committed_at=utc_text(start_ns + 2 * 10**9),
        host=f"host-{run % 2}",
    )
    folder = root / "records" / commit.nonce
    folder.mkdir(parents=True)
    for table, data in model.files.items():
        (folder / f"{table}.parquet").write_bytes(data)
    path = root / "executions" / stage / commit.key / f"{commit.nonce}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(seal(commit.to_document()))
    return StageLink(
        stage=stage,
        key=commit.key,
        nonce=commit.nonce,
        state="executed",
        reason=commit.reason,
        duration_ns=10**9,
        waiting_ns=10**6,
        program_ns=9 * 10**8,
        recording_ns=10**7,
        hashing_ns=10**6,
        key_ns=10**7,
    )


def _write_run(root: Path, links: list[StageLink], run: int) -> None:
    system, start_ns = run // RUNS_OF_A_SYSTEM, FIRST_NS + run * DAY_NS
    start = RunStart(
        run_id=f"{utc_text(start_ns)[:10].replace('-', '')}-{run:06}",
        flow="qualify",
        components={"system": f"{system:064x}", "data": "d" * 64},
        preset="fixture",
        is_declared=True,
        configuration={"train": {"updates": 300}},
        started_at=utc_text(start_ns),
        host=f"host-{run % 2}",
        process_id=1,
    )
    folder = root / "runs" / start.run_id
    folder.mkdir(parents=True)
    document = {**dataclasses.asdict(start), "subject": start.subject}
    (folder / "started.json").write_bytes(seal({"format": FORMAT, **document}))
    status = ENDINGS.get(run % 17, "completed")
    if not status:
        return
    is_whole = status == "completed"
    finish = RunFinish(
        run_id=start.run_id,
        status=status,  # type: ignore[arg-type]
        message="" if is_whole else f"train_model failed: process {run} went away",
        finished_at=utc_text(start_ns + 10 * 10**9),
        links=tuple(links if is_whole else links[:1]),
        elapsed_ns=12 * 10**9,
        starting_ns=2 * 10**9,
        ending_ns=10**7,
    )
    document = {"format": FORMAT, **dataclasses.asdict(finish)}
    (folder / "finished.json").write_bytes(seal(document))


def seconds_of_query(root: Path, query: str) -> float:
    """Returns how long a user waits for the answer to a question."""
    started = time.monotonic()
    command = [sys.executable, "-m", "flows.command_line", "sql", query]
    environment = {**os.environ, "HARNESS_ROOT": str(root)}
    subprocess.run(
        command, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=600
    )
    return time.monotonic() - started


def main() -> None:
    """Makes the store, prints the times, removes the store."""
    parser = argparse.ArgumentParser(prog="many_runs", description=__doc__)
    parser.add_argument("runs", type=int)
    parser.add_argument("--like", type=Path, help="store whose newest run is copied")
    parser.add_argument(
        "--every", type=int, default=4, help="each such run computes all of its stages"
    )
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="text-harness-many-"))
    try:
        models = (
            models_of(options.like)
            if options.like
            else [made_up(stage) for stage in STAGES]
        )
        write_store(root, models, options.runs, options.every)
        for query in QUERIES:
            print(f"{seconds_of_query(root, query):8.2f} s  harness sql {query!r}")
        started = time.monotonic()
        with open_warehouse(root) as connection:
            print(f"{time.monotonic() - started:8.2f} s  open with every view")
            for view in read_views():
                started = time.monotonic()
                rows = len(connection.execute(f"select * from {view.name}").fetchall())
                took = time.monotonic() - started
                print(f"{took:8.2f} s  {view.name}, {rows} rows")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
