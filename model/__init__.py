"""The language-model training system under qualification, numbers in, numbers out.

Everything here is a pure function over arrays, bytes or frozen configuration; the
only modules that touch files are the documents, the checkpoints and the programs
under ``model/programs``. Nothing here knows Prefect, DuckDB, PyArrow or a verdict.

Shape letters, equal to the letters of every einsum:
    B batch, T time, D model width, H heads, K head width, F feed-forward width,
    V vocabulary, N documents.
"""
