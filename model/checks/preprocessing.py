"""Claim 1.6: tokens made under another setting are refused, setting by setting.

Shapes and digests of the token arrays stay what they are, so nothing but the described
setting can be the reason of a refusal.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from model.checks.refused import RefusalRows, Wrong, pair_row, refused_rows
from model.checks.rows import Row, count
from model.config import ModelConfig
from model.folders import folder_sha256
from model.refusal import ReasonCode, Refused

CLAIM = "1.6"
MEASURE = "changed_preprocessing"
UNTOUCHED = "artifact_after_refusal"
Load = Callable[[Path, Path, ModelConfig], object]

# Every field of the two descriptions, in their order, and the code it must be refused
# with, written out, so that a field that the system forgets is still asked; the last
# one is not known yet. The model's own context is compared with two fields.
CHANGES: tuple[tuple[str, str, ReasonCode], ...] = (
    ("tokenizer", "name", ReasonCode.TOKENIZER_NAME_CHANGED),
    ("tokenizer", "version", ReasonCode.TOKENIZER_VERSION_CHANGED),
    ("tokenizer", "pad_token", ReasonCode.PAD_TOKEN_CHANGED),
    ("tokenizer", "begin_token", ReasonCode.BEGIN_TOKEN_CHANGED),
    ("tokenizer", "end_token", ReasonCode.END_TOKEN_CHANGED),
    ("tokenizer", "byte_offset", ReasonCode.BYTE_OFFSET_CHANGED),
    ("tokenizer", "vocabulary_tokens", ReasonCode.VOCABULARY_CHANGED),
    ("preprocessing", "version", ReasonCode.PREPROCESSING_VERSION_CHANGED),
    ("preprocessing", "normalization", ReasonCode.NORMALIZATION_CHANGED),
    ("preprocessing", "encoding", ReasonCode.ENCODING_CHANGED),
    ("preprocessing", "layout", ReasonCode.LAYOUT_CHANGED),
    ("preprocessing", "overlong", ReasonCode.OVERLONG_CHANGED),
    ("model", "context_tokens", ReasonCode.CONTEXT_CHANGED),
    ("preprocessing", "context_tokens", ReasonCode.CONTEXT_CHANGED),
    ("preprocessing", "row_tokens", ReasonCode.ROW_TOKENS_CHANGED),
    ("preprocessing", "lowercase", ReasonCode.PREPROCESSING_CHANGED),
)
CONTEXT_FIELDS = ("preprocessing.context_tokens", "preprocessing.row_tokens")


def measure_changed_preprocessing(
    load: Load, tokens: Path, description: Path, model: ModelConfig, folder: Path
) -> RefusalRows:
    """Returns what became of an artifact read under other settings, one and two.

    Args:
        load: Tokens, description and model to a corpus; the function under
            qualification.
        tokens: The token table.
        description: Its description.
        model: The model that reads it.
        folder: An empty folder for the altered descriptions.
    """
    reader = _Reader(load, tokens, description, model, folder)
    single = [
        refused_rows(
            *(CLAIM, MEASURE, reader.wrong(change)),
            *(reader.attempt(change), reader.digest, UNTOUCHED),
        )
        for change in CHANGES
    ]
    pairs = [
        pair_row(
            *(CLAIM, MEASURE, reader.wrong(first), reader.wrong(second)),
            *(reader.attempt(first, second), reader.digest),
        )
        for first, second in itertools.combinations(CHANGES, 2)
    ]
    return RefusalRows(
        refusals=[refused for refused, _ in single],
        comparisons=[row for _, about in single for row in about],
        refused_pairs=pairs,
        measurements=[_accepts_its_own(load, tokens, description, model)],
    )


Change = tuple[str, str, ReasonCode]


class _Reader:
    """An artifact that is read under other settings."""

    def __init__(
        self, load: Load, tokens: Path, description: Path, model: ModelConfig, to: Path
    ) -> None:
        self._load = load
        self._tokens = tokens
        self._description = description
        self._model = model
        self._folder = to

    def digest(self) -> str:
        """Digest of everything that the loader can reach: artifact and alterations."""
        return folder_sha256(self._tokens.parent, self._folder)

    def wrong(self, change: Change) -> Wrong:
        """What is wrong under one changed setting."""
        part, name, code = change
        fields = CONTEXT_FIELDS if part == "model" else (f"{part}.{name}",)
        return Wrong(case=f"{part}/{name}", code=code, fields=fields)

    def attempt(self, *changes: Change) -> Callable[[], object]:
        """Writes the description with other values; returns what reads it."""
        described: dict[str, Any] = json.loads(self._description.read_text("utf-8"))
        model = self._model
        for part, name, _ in changes:
            if part == "model":
                model = replace(model, context_tokens=model.context_tokens + 1)
            else:
                value = described[part].get(name, "none")
                described[part][name] = _another(value)
        path = self._folder / "corpus.json"
        path.write_text(json.dumps(described), "utf-8")
        return partial(self._load, self._tokens, path, model)


def _another(value: Any) -> Any:
    # Not one more: a longer context of the model must not meet it by chance.
    return value * 2 + 1 if isinstance(value, int) else f"not {value}"


def _accepts_its_own(
    load: Load, tokens: Path, description: Path, model: ModelConfig
) -> Row:
    """Whether the unchanged artifact is refused too: 0 or 1."""
    refused, detail = 0, ""
    try:
        load(tokens, description, model)
    except Refused as error:
        refused, detail = 1, error.message
    return count(CLAIM, "unchanged_artifacts_refused", "", refused, "artifacts", detail)
