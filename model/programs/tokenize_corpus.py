"""Turns the documents of a manifest into token tables and measures claims 1.1 to 1.6.

The digest of the splits is taken here, before any training can begin, and travels
with the tokens.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model.checks.documents import (
    measure_longest,
    measure_messages,
    measure_reading,
    measure_refusals,
)
from model.checks.preprocessing import measure_changed_preprocessing
from model.checks.refused import RefusalRows
from model.checks.rows import Row
from model.checks.splits import measure_splits
from model.checks.tokens import (
    MULTIBYTE_SAMPLES,
    compare_diagram,
    measure_round_trip,
    measure_targets,
    token_diagram,
)
from model.config import ModelConfig, from_dict
from model.corpus import load_corpus
from model.digests import array_sha256
from model.documents import Document, load_text_manifest
from model.manifest import SPLITS, split_sha256, splits_sha256
from model.programs import entry
from model.tokenizer import (
    PAD,
    decode,
    describe,
    describe_preprocessing,
    document_tokens,
    encode,
)

DIAGRAMS_A_SPLIT = 1

Documents = Mapping[str, Sequence[Document]]
Tables = Mapping[str, np.ndarray]


def main(request: dict[str, Any], out: Path) -> None:
    """Tokenizes a corpus.

    Args:
        request: ``manifest``, a path, and ``model``, a ModelConfig as JSON.
        out: The result folder; gets tokens.npz, corpus.json and rows.
    """
    model = from_dict(ModelConfig, request["model"])
    context_tokens = model.context_tokens
    loaded = load_text_manifest(Path(request["manifest"]), context_tokens)
    documents = {
        split: [document for document in loaded if document.split == split]
        for split in SPLITS
    }
    tables = {
        split: np.stack([_token_row(document, context_tokens) for document in members])
        for split, members in documents.items()
    }
    entry.report(event="tokenized", documents=len(loaded))

    measured, compared = _measure(loaded, documents, tables)
    diagrams, diagram_comparisons = _diagrams(documents, context_tokens)
    refused, refusal_counts = _refusals(context_tokens)

    entry.write_rows(out, "documents", _document_rows(documents, tables))
    entry.write_rows(out, "splits", _split_rows(documents, tables))
    entry.write_rows(out, "token_diagrams", diagrams)
    entry.write_rows(out, "measurements", measured + refusal_counts)
    entry.write_rows(out, "comparisons", compared + diagram_comparisons)
    for table, rows in refused.tables().items():
        entry.write_rows(out, table, rows)
    # the stub takes any keyword for allow_pickle
    np.savez(entry.artifact(out, "tokens.npz"), **tables)  # type: ignore[arg-type]
    corpus = _describe_corpus(documents, tables, context_tokens)
    text = json.dumps(corpus, indent=1, sort_keys=True)
    entry.artifact(out, "corpus.json").write_text(text + "\n", "utf-8")
    _write_changed_preprocessing(out, model)


def _write_changed_preprocessing(out: Path, model: ModelConfig) -> None:
    """Writes what becomes of the new artifacts under other settings (1.6)."""
    tokens = entry.artifact(out, "tokens.npz")
    described = entry.artifact(out, "corpus.json")
    with tempfile.TemporaryDirectory(prefix="other-settings-") as name:
        found = measure_changed_preprocessing(
            load_corpus, tokens, described, model, Path(name)
        )
    for table, rows in found.tables().items():
        entry.write_rows(out, table, rows)


def _token_row(document: Document, context_tokens: int) -> np.ndarray:
    return document_tokens(document.data, context_tokens, name=str(document.entry))


def _measure(
    loaded: Sequence[Document], documents: Documents, tables: Tables
) -> tuple[list[Row], list[Row]]:
    """Returns the measurements and the comparisons of claims 1.1, 1.3 and 1.5."""
    checked = measure_round_trip(encode, decode) + measure_splits(loaded)
    for split in SPLITS:
        contents = [document.data for document in documents[split]]
        checked += measure_targets(split, tables[split], contents)
    return (
        [row for row in checked if "unit" in row],
        [row for row in checked if "expected" in row],
    )


def _diagrams(
    documents: Documents, context_tokens: int
) -> tuple[list[dict[str, Any]], list[Row]]:
    """Returns the token diagrams of a multibyte sample and of the first documents."""
    sample = next(
        text.encode()
        for text in MULTIBYTE_SAMPLES
        if len(text.encode()) < context_tokens
    )
    shown = [("multibyte", "multibyte-sample", sample)] + [
        (f"{split}/{document.document_id}", document.document_id, document.data)
        for split, members in documents.items()
        for document in members[:DIAGRAMS_A_SPLIT]
    ]
    diagrams, comparisons = [], []
    for case, document_id, data in shown:
        diagram = token_diagram(document_id, document_tokens(data, context_tokens))
        diagrams += diagram
        comparisons.append(compare_diagram(case, diagram, data))
    return diagrams, comparisons


def _refusals(context_tokens: int) -> tuple[RefusalRows, list[Row]]:
    """Returns the refusals of bad corpora, and what their texts leave out."""
    with tempfile.TemporaryDirectory(prefix="bad-corpora-") as name:
        folder = Path(name)
        refused = measure_refusals(load_text_manifest, folder, context_tokens)
        longest = measure_longest(load_text_manifest, folder, context_tokens)
        read = measure_reading(load_text_manifest, folder, context_tokens)
    told = measure_messages(refused.refusals, context_tokens)
    return refused, [*told, longest, *read]


def _document_rows(documents: Documents, tables: Tables) -> list[dict[str, Any]]:
    return [
        {
            "document_id": document.document_id,
            "split": split,
            "source_group": document.entry.group,
            "license": document.entry.license,
            "source": document.entry.source,
            "sha256": document.entry.sha256,
            "document_bytes": len(document.data),
            "valid_targets": _valid_targets(row),
        }
        for split, members in documents.items()
        for document, row in zip(members, tables[split], strict=True)
    ]


def _split_rows(documents: Documents, tables: Tables) -> list[dict[str, Any]]:
    return [
        {
            "split": split,
            "documents": len(members),
            "document_bytes": sum(len(document.data) for document in members),
            "valid_targets": _valid_targets(tables[split]),
            "padded_targets": int(np.sum(tables[split][:, 1:] == PAD)),
            "split_sha256": split_sha256([each.entry for each in members], split),
        }
        for split, members in documents.items()
    ]


def _valid_targets(tokens: np.ndarray) -> int:
    """Returns the targets that count in one token row or in a table of them."""
    return int(np.sum(tokens[..., 1:] != PAD))


def _describe_corpus(
    documents: Documents, tables: Tables, context_tokens: int
) -> dict[str, Any]:
    """Returns what later stages must know of the tokens, as JSON values."""
    entries = [each.entry for members in documents.values() for each in members]
    return {
        "splits": {
            split: [each.document_id for each in members]
            for split, members in documents.items()
        },
        "groups": {
            split: [each.entry.group for each in members]
            for split, members in documents.items()
        },
        "documents_sha256": {
            split: [each.entry.sha256 for each in members]
            for split, members in documents.items()
        },
        "split_sha256": splits_sha256(entries),
        "splits_sha256": {split: split_sha256(entries, split) for split in SPLITS},
        "tokens_sha256": {split: array_sha256(tables[split]) for split in SPLITS},
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(context_tokens),
        "context_tokens": context_tokens,
    }


if __name__ == "__main__":
    entry.run(main)
