"""Claims 1.4 and 1.5: bad corpora are refused, each for its own reason.

Every case is a small good corpus, written to disk and then spoilt in one way, so a
refusal is about that one thing; and in two ways at two places, of which none may hide
the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from model.checks import rows
from model.checks.bad_corpora import (
    BadCorpus,
    bad_corpora,
    fill,
    lengthen,
    write_corpus,
)
from model.checks.refused import RefusalRows, Wrong, pair_row, refused_rows
from model.documents import Document
from model.folders import folder_sha256
from model.refusal import Refused

UNTOUCHED = "corpus_after_refusal"
PAIRS_CLAIM, PAIRS = "1.4", "bad_corpus"
# What is wrong with entries is looked at first, then what stands twice, then files.
ORDER = ("bad_manifest", "overlapping_splits", "bad_document", "escaping_path")
# A corpus with two documents in each split has no empty one.
ALONE = ("split_empty",)
# What a text mode, a decoder or a cleaner would change.
READ_TEXTS = {
    "line_endings": b"\r\n\ra\n",
    "control": b"\x1a\x00 \t",
    "mark": b"\xef\xbb\xbf",
    "combining": "e\u0301".encode(),
}

Load = Callable[[Path, int], Sequence[Document]]


def measure_refusals(load: Load, folder: Path, context_tokens: int) -> RefusalRows:
    """Returns what became of each bad corpus, spoilt in one way and in two.

    Args:
        load: Manifest path and context to documents; the function under qualification.
        folder: An empty folder for the corpora.
        context_tokens: Most input tokens of a document, BOS included; at least 3.
    """
    refused: list[rows.Row] = []
    compared: list[rows.Row] = []
    every = bad_corpora(context_tokens)
    for bad in every:
        corpus = folder / bad.measure / bad.case_name
        attempt = partial(load, write_corpus(corpus, bad.spoil), context_tokens)
        row, about = refused_rows(
            *(bad.claim, bad.measure, _wrong(bad, bad.case_name)),
            *(attempt, partial(folder_sha256, corpus), UNTOUCHED),
        )
        # where the corpus happened to lie is no evidence
        refused.append(
            row | {"message": row["message"].replace(str(folder), "corpora")}
        )
        compared += about
    together = sorted(
        (bad for bad in every if bad.case_name not in ALONE),
        key=lambda bad: ORDER.index(bad.measure),
    )
    pairs = [
        _spoilt_twice(load, folder / "two" / str(number), context_tokens, *two)
        for number, two in enumerate(itertools.combinations(together, 2))
    ]
    return RefusalRows(refusals=refused, comparisons=compared, refused_pairs=pairs)


def measure_reading(load: Load, folder: Path, context_tokens: int) -> list[rows.Row]:
    """Returns how many documents are read as other bytes than lie on the disk.

    Args:
        load: Manifest path and context to documents; the function under qualification.
        folder: An empty folder for the corpora.
        context_tokens: Most input tokens of a document, BOS included; at least 3.
    """
    counts = []
    for case, text in READ_TEXTS.items():
        # A context too short for a text still has room for one line ending.
        data = text if len(text) < context_tokens else b"\r\n"
        manifest = write_corpus(folder / "read" / case, fill(data))
        found = load(manifest, context_tokens)[0].data
        changed, detail = int(found != data), f"{data!r} is read as {found!r}"
        measure = "documents_changed_by_reading"
        counts.append(rows.count("1.1", measure, case, changed, "documents", detail))
    return counts


def _spoilt_twice(
    load: Load, corpus: Path, context_tokens: int, first: BadCorpus, second: BadCorpus
) -> rows.Row:
    """Returns a row of ``refused_pairs``: two documents, each bad in its own way."""
    manifest = write_corpus(corpus, first.spoil, second.spoil)
    # The documents of the second come behind those of the first and what it added.
    names = (f"{bad.measure}/{bad.case_name}" for bad in (first, second))
    attempt = partial(load, manifest, context_tokens)
    return pair_row(
        *(PAIRS_CLAIM, PAIRS),
        _wrong(first, next(names)),
        _wrong(second, next(names), first.entries),
        *(attempt, partial(folder_sha256, corpus)),
    )


def _wrong(bad: BadCorpus, case: str, entries_before: int = 0) -> Wrong:
    path = bad.field
    if bad.place is not None:
        path = f"entries.{bad.place + entries_before}.{bad.field}"
    # The sentence has the name of the document; its numbers are looked for apart.
    return Wrong(case=case, code=bad.reason, fields=(path,), told=())


def measure_messages(
    refused: Sequence[rows.Row], context_tokens: int
) -> list[rows.Row]:
    """Returns how many numbers that a refusal owes its reader are not in its text.

    Args:
        refused: Rows of ``refusals`` that ``measure_refusals`` returned.
        context_tokens: The context they were made with.
    """
    messages = {(row["measure"], row["case_name"]): row["message"] for row in refused}
    counts = []
    for bad in bad_corpora(context_tokens):
        if bad.named:
            message = messages[bad.measure, bad.case_name]
            missing = [text for text in bad.named if text not in message]
            counts.append(
                rows.count(
                    bad.claim,
                    "numbers_missing_in_refusal",
                    bad.case_name,
                    len(missing),
                    "numbers",
                    f"of {', '.join(bad.named)}",
                )
            )
    return counts


def measure_longest(load: Load, folder: Path, context_tokens: int) -> rows.Row:
    """Returns how many corpora with a document that just fits are refused: 0 or 1."""
    manifest = write_corpus(folder / "longest", lengthen(context_tokens - 1))
    refused, detail = 0, f"{context_tokens - 1} bytes in {context_tokens} tokens"
    try:
        load(manifest, context_tokens)
    except Refused as error:
        refused, detail = 1, error.message
    return rows.count(
        "1.4", "longest_documents_refused", "", refused, "documents", detail
    )
