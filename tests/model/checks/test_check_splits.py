"""The split check counts every kind of overlap, although a loader would refuse it."""

import dataclasses
import hashlib
from pathlib import Path

import pytest

from model.checks.splits import measure_splits
from model.config import fixture_manifest
from model.documents import Document, load_text_manifest
from model.manifest import ManifestEntry


def document(name: str, split: str, group: str, data: bytes) -> Document:
    return Document(
        entry=ManifestEntry(
            id=name,
            file=f"{name}.txt",
            split=split,
            group=group,
            license="CC0-1.0",
            source="a test",
            sha256=hashlib.sha256(data).hexdigest(),
        ),
        data=data,
    )


GOOD = [
    document("a", "train", "g", b"1"),
    document("b", "train", "g", b"2"),
    document("c", "validation", "h", b"3"),
    document("d", "heldout", "i", b"4"),
]


def counts(documents: list[Document]) -> dict[str, int]:
    return {
        row["measure"].split("_")[0]: row["value_count"]
        for row in measure_splits(documents)
        if "value_count" in row
    }


def test_the_fixture_shares_nothing_between_its_splits() -> None:
    rows = measure_splits(load_text_manifest(Path(fixture_manifest()), 12))
    assert [row["value_count"] for row in rows if "value_count" in row] == [0, 0, 0]
    digests = [row for row in rows if row["measure"] == "split_digest"]
    assert [row["case_name"] for row in digests] == ["train", "validation", "heldout"]
    assert all(row["expected"] == row["measured"] for row in digests)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (document("a", "heldout", "j", b"5"), {"ids": 1, "groups": 0, "contents": 0}),
        (document("e", "heldout", "g", b"5"), {"ids": 0, "groups": 1, "contents": 0}),
        (document("e", "heldout", "j", b"3"), {"ids": 0, "groups": 0, "contents": 1}),
    ],
)
def test_each_kind_of_overlap_is_counted(
    added: Document, expected: dict[str, int]
) -> None:
    assert counts(GOOD) == {"ids": 0, "groups": 0, "contents": 0}
    assert counts([*GOOD, added]) == expected


def test_a_manifest_digest_that_is_not_that_of_the_bytes_parts_the_split_digest() -> (
    None
):
    forged = dataclasses.replace(GOOD[0], data=b"other")
    rows = measure_splits([forged, *GOOD[1:]])
    parted = [
        row["case_name"]
        for row in rows
        if row["measure"] == "split_digest" and row["first_difference"]
    ]
    assert parted == ["train"]
