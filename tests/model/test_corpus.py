"""A corpus read back is the described one, or it is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from model.config import ModelConfig
from model.corpus import load_corpus
from model.digests import array_sha256
from model.refusal import Refused
from model.tokenizer import describe, describe_preprocessing

MODEL = ModelConfig()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    arrays = {
        split: np.full((2, 13), 70 + number, dtype=np.int32)
        for number, split in enumerate(("train", "validation", "heldout"))
    }
    np.savez(tmp_path / "tokens.npz", **arrays)
    description = {
        "splits": {split: [f"{split}-0", f"{split}-1"] for split in arrays},
        "tokens_sha256": {split: array_sha256(x) for split, x in arrays.items()},
        "split_sha256": "d",
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(12),
    }
    (tmp_path / "corpus.json").write_text(json.dumps(description))
    return tmp_path / "tokens.npz", tmp_path / "corpus.json"


def test_tokens_and_ids_come_back_by_split(files: tuple[Path, Path]) -> None:
    corpus = load_corpus(*files, MODEL)
    assert corpus.tokens["heldout"][0, 0] == 72
    assert corpus.document_ids["train"] == ["train-0", "train-1"]
    assert corpus.split_sha256 == "d"


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_other_tokens_than_the_described_are_refused(files: tuple[Path, Path]) -> None:
    other = {
        s: np.full((2, 13), 9, np.int32) for s in ("train", "validation", "heldout")
    }
    np.savez(files[0], **other)
    with pytest.raises(Refused, match="'train'") as refused:
        load_corpus(*files, MODEL)
    assert refused.value.code == "tokens_malformed"


def test_another_context_is_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(Refused, match="was 12 and is 16") as refused:
        load_corpus(*files, ModelConfig(context_tokens=16))
    assert refused.value.code == "context_changed"


def test_another_tokenizer_is_refused(files: tuple[Path, Path]) -> None:
    change(files[1], tokenizer={**describe(), "version": 0})
    with pytest.raises(Refused, match="tokenizer") as refused:
        load_corpus(*files, MODEL)
    assert refused.value.code == "tokenizer_version_changed"
    assert refused.value.fields == ("tokenizer.version",)


def test_two_changed_settings_are_both_named(files: tuple[Path, Path]) -> None:
    """A check of one field never hides another."""
    other = {**describe_preprocessing(12), "normalization": "NFC", "layout": "bytes"}
    change(files[1], preprocessing=other)
    with pytest.raises(Refused, match=r"normalization.*layout") as refused:
        load_corpus(*files, MODEL)
    assert refused.value.code == "normalization_changed"
    assert refused.value.fields == (
        "preprocessing.normalization",
        "preprocessing.layout",
    )


def test_a_setting_that_only_the_artifact_has_is_named(
    files: tuple[Path, Path],
) -> None:
    change(files[1], tokenizer={**describe(), "merges": 7})
    with pytest.raises(Refused, match=r"merges was 7 and is None") as refused:
        load_corpus(*files, MODEL)
    assert refused.value.code == "tokenizer_changed"
    assert refused.value.fields == ("tokenizer.merges",)


@pytest.mark.parametrize("broken", ["tokens.npz", "corpus.json"])
def test_a_file_that_cannot_be_read_is_refused(
    files: tuple[Path, Path], broken: str
) -> None:
    (files[0].parent / broken).write_bytes(b"nothing")
    with pytest.raises(Refused) as refused:
        load_corpus(*files, MODEL)
    assert refused.value.code == "tokens_malformed"
