"""Claim 1.5: the three splits share nothing, and the digest that fixes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from model.checks import rows
from model.documents import Document
from model.manifest import SPLITS, split_sha256
from model.reference import manifest as reference


def measure_splits(documents: Sequence[Document]) -> list[rows.Row]:
    """Returns what two splits share, and the digest of each split beside a second one.

    Contents are hashed anew from the bytes that will be trained on, not taken from
    the manifest.

    Args:
        documents: The loaded documents of all splits, in manifest order.

    Raises:
        ValueError: A split is empty, which shares nothing and equals another one.

    Reference: model/reference/manifest.py
    """
    entries = [document.entry for document in documents]
    for split in SPLITS:
        if not any(entry.split == split for entry in entries):
            raise ValueError(f"the split {split!r} has no document to find in another")
    contents = [document.data for document in documents]
    splits = [entry.split for entry in entries]
    shared = {
        "ids_in_two_splits": [entry.id for entry in entries],
        "groups_in_two_splits": [entry.group for entry in entries],
        "contents_in_two_splits": [
            hashlib.sha256(data).hexdigest() for data in contents
        ],
    }
    counts = [
        rows.count(
            "1.5",
            measure,
            "",
            reference.repeated_across_splits(values, splits),
            measure.partition("_")[0],
            f"of {len(set(values))}",
        )
        for measure, values in shared.items()
    ]
    digests = [
        rows.comparison(
            "1.5",
            "split_digest",
            split,
            reference.split_sha256(entries, contents, split),
            split_sha256(entries, split),
            "model/reference/manifest.py",
        )
        for split in SPLITS
    ]
    return counts + digests
