"""A tokenised corpus read back from its two artifacts, held against their digests.

Programs downstream of the tokenizer trust no file: the token arrays must be the ones
that the corpus description names, made by this tokenizer for this context.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model.config import ModelConfig
from model.digests import array_sha256
from model.refusal import ReasonCode, Refused
from model.tokenizer import describe, describe_preprocessing

# Every field of the two descriptions has a code of its own. A field that this version
# does not know is refused as tokenizer_changed or preprocessing_changed, and named.
_FIELD_CODES = {
    "tokenizer.name": ReasonCode.TOKENIZER_NAME_CHANGED,
    "tokenizer.version": ReasonCode.TOKENIZER_VERSION_CHANGED,
    "tokenizer.byte_offset": ReasonCode.BYTE_OFFSET_CHANGED,
    "tokenizer.vocabulary_tokens": ReasonCode.VOCABULARY_CHANGED,
    "tokenizer.pad_token": ReasonCode.PAD_TOKEN_CHANGED,
    "tokenizer.begin_token": ReasonCode.BEGIN_TOKEN_CHANGED,
    "tokenizer.end_token": ReasonCode.END_TOKEN_CHANGED,
    "preprocessing.version": ReasonCode.PREPROCESSING_VERSION_CHANGED,
    "preprocessing.normalization": ReasonCode.NORMALIZATION_CHANGED,
    "preprocessing.encoding": ReasonCode.ENCODING_CHANGED,
    "preprocessing.layout": ReasonCode.LAYOUT_CHANGED,
    "preprocessing.overlong": ReasonCode.OVERLONG_CHANGED,
    "preprocessing.context_tokens": ReasonCode.CONTEXT_CHANGED,
    "preprocessing.row_tokens": ReasonCode.ROW_TOKENS_CHANGED,
}


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Token rows and document ids by split, and what identifies them."""

    tokens: Mapping[str, np.ndarray]
    """Token rows [documents, context + 1], int32, by split."""
    document_ids: Mapping[str, list[str]]
    """Ids in row order, by split."""
    split_sha256: str
    """Digest over all three splits."""
    description: Mapping[str, Any]
    """The whole description, as the tokenizer's program wrote it."""


def load_corpus(tokens: Path, description: Path, model: ModelConfig) -> Corpus:
    """Returns the corpus of the artifacts `tokens.npz` and `corpus.json`.

    Args:
        tokens: NPZ file with one int32 array a split.
        description: JSON file that names every array by its digest.
        model: The model that is to read it.

    Raises:
        Refused: `tokens_malformed` when a file cannot be read or an array is not the
            one described; the code of the setting when tokens were made under another.
    """
    try:
        described = json.loads(description.read_text("utf-8"))
        ids, digests = described["splits"], described["tokens_sha256"]
        with np.load(tokens, allow_pickle=False) as archive:
            arrays = {split: archive[split] for split in ids}
        split_sha256 = described["split_sha256"]
        made_with = {
            "tokenizer": dict(described["tokenizer"]),
            "preprocessing": dict(described["preprocessing"]),
        }
        found = {split: array_sha256(array) for split, array in arrays.items()}
    except (
        *(OSError, ValueError, KeyError, TypeError, EOFError),
        *(zipfile.BadZipFile, zlib.error),
    ) as error:
        raise Refused(
            ReasonCode.TOKENS_MALFORMED,
            f"Token table {tokens.name!r} or its description {description.name!r}"
            f" cannot be read ({error!r}); tokenize the corpus again.",
        ) from error
    _check_settings(made_with, model.context_tokens)
    for split, array in arrays.items():
        _check_split(
            split, array, ids[split], digests.get(split) == found[split], model
        )
    return Corpus(
        tokens=arrays,
        document_ids=ids,
        split_sha256=split_sha256,
        description=described,
    )


def _check_settings(
    made_with: Mapping[str, Mapping[str, Any]], context_tokens: int
) -> None:
    """Refuses tokens made under another setting than the ones they are read under."""
    here = {
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(context_tokens),
    }
    changed = {
        f"{part}.{name}": (made_with[part].get(name), here[part].get(name))
        for part in here
        for name in {**here[part], **made_with[part]}
        if made_with[part].get(name) != here[part].get(name)
    }
    if changed:
        first = next(iter(changed))
        general = ReasonCode(f"{first.partition('.')[0]}_changed")
        told = "; ".join(
            f"{name} was {before!r} and is {now!r}"
            for name, (before, now) in changed.items()
        )
        raise Refused(
            _FIELD_CODES.get(first, general),
            f"Tokens were made under another setting: {told}; tokenize the corpus"
            " again.",
            changed,
        )


def _check_split(
    split: str,
    array: np.ndarray,
    ids: list[str],
    is_described: bool,
    model: ModelConfig,
) -> None:
    shape = (len(ids), model.context_tokens + 1)
    if array.dtype != np.int32 or array.shape != shape or not is_described:
        raise Refused(
            ReasonCode.TOKENS_MALFORMED,
            f"Tokens of split {split!r} are {array.dtype} {array.shape!r} and"
            f" {'have' if is_described else 'lack'} the described digest, where int32"
            f" {shape!r} is needed; tokenize the corpus for this context.",
        )
