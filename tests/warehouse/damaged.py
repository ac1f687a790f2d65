"""A whole store, and the files of it that tests alter."""

from pathlib import Path

from warehouse.sealed import seal, unseal


def flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 4
    path.write_bytes(bytes(data))


def files_of(whole, kind: str) -> list[Path]:
    patterns = {
        "evidence": "records/*/measurements.parquet",
        "other evidence": "records/*/comparisons.parquet",
        "artifact": "artifacts/*/*",
        "commit record": "executions/*/*/*.json",
        "run record": "runs/*/*.json",
    }
    return sorted(whole.store.root.glob(patterns[kind]))


def reseal(path: Path, **changes) -> None:
    """Changes a document and seals it again, as only a program of ours could."""
    path.write_bytes(seal({**unseal(path.read_bytes()), **changes}))
