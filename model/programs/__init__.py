"""One small entry a stage: read plain files, compute, write plain files.

A program is started as ``python -m model.programs.NAME REQUEST.json`` in a process of
its own, writes JSON rows and arrays into the result folder that the request names,
and imports neither Prefect nor PyArrow nor DuckDB.
"""
