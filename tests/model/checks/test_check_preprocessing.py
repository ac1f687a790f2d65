"""Every changed setting is refused for its own reason, and the check can fail."""

import json
from pathlib import Path

import numpy as np
import pytest

from model.checks.preprocessing import (
    CHANGES,
    MEASURE,
    UNTOUCHED,
    measure_changed_preprocessing,
)
from model.checks.refused import RefusalRows
from model.config import ModelConfig
from model.corpus import Corpus, load_corpus
from model.digests import array_sha256
from model.refusal import ReasonCode, Refused
from model.tokenizer import describe, describe_preprocessing

MODEL = ModelConfig()
SPLITS = ("train", "validation", "heldout")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    arrays = {split: np.full((2, 13), 70, np.int32) for split in SPLITS}
    np.savez(artifacts / "tokens.npz", **arrays)
    description = {
        "splits": {split: ["a", "b"] for split in SPLITS},
        "tokens_sha256": {split: array_sha256(x) for split, x in arrays.items()},
        "split_sha256": "d",
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(MODEL.context_tokens),
    }
    (artifacts / "corpus.json").write_text(json.dumps(description))
    return artifacts / "tokens.npz", artifacts / "corpus.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "other"
    made.mkdir()
    return made


def parted(found: RefusalRows) -> list[tuple[str, str]]:
    """Table and case of the rows that a verdict would not accept."""
    return [
        (table, row.get("case_name") or f"{row['first_change']}+{row['second_change']}")
        for table, rows in found.tables().items()
        for row in rows
        if row.get("expected_reason") != row.get("received_reason")
        or row.get("expected") != row.get("measured")
        or row.get("expected_fields") != row.get("received_fields")
        or row.get("sha256_before") != row.get("sha256_after")
    ]


def test_each_changed_setting_is_refused_with_its_own_code(
    files: tuple[Path, Path], folder: Path
) -> None:
    found = measure_changed_preprocessing(load_corpus, *files, MODEL, folder)
    assert parted(found) == []
    assert len(found.refusals) == len(CHANGES)
    assert len(found.comparisons) == 2 * len(CHANGES)
    assert [row["value_count"] for row in found.measurements] == [0]
    codes = [row["received_reason"] for row in found.refusals]
    # The context is one field, seen from the artifact and from the model.
    assert codes.count("context_changed") == 2
    assert len(set(codes)) == len(codes) - 1


def test_of_every_two_changed_settings_both_are_named(
    files: tuple[Path, Path], folder: Path
) -> None:
    found = measure_changed_preprocessing(load_corpus, *files, MODEL, folder)
    pairs = {(row["first_change"], row["second_change"]) for row in found.refused_pairs}
    assert len(pairs) == len(CHANGES) * (len(CHANGES) - 1) // 2
    assert ("tokenizer/pad_token", "tokenizer/end_token") in pairs


def test_every_field_of_both_descriptions_is_changed_once() -> None:
    """A field added to a description needs a case here."""
    fields = {("tokenizer", name) for name in describe()}
    fields |= {("preprocessing", name) for name in describe_preprocessing(12)}
    asked = {(part, name) for part, name, _ in CHANGES}
    assert asked - fields == {
        ("preprocessing", "lowercase"),
        ("model", "context_tokens"),
    }
    assert fields - asked == set()


def test_a_loader_that_stops_at_the_first_setting_is_seen(
    files: tuple[Path, Path], folder: Path
) -> None:
    def first_only(tokens: Path, description: Path, model: ModelConfig) -> Corpus:
        try:
            return load_corpus(tokens, description, model)
        except Refused as refused:
            first = refused.fields[:1]
            raise Refused(refused.code, refused.message, first) from None

    found = measure_changed_preprocessing(first_only, *files, MODEL, folder)
    pairs = [case for table, case in parted(found) if table == "refused_pairs"]
    # The model's context is two fields of the artifact, so one is hidden there too.
    assert len(pairs) == len(found.refused_pairs)
    assert ("comparisons", f"{MEASURE}/model/context_tokens") in parted(found)


def test_a_loader_that_names_a_setting_too_many_is_seen(
    files: tuple[Path, Path], folder: Path
) -> None:
    def blaming(tokens: Path, description: Path, model: ModelConfig) -> Corpus:
        try:
            return load_corpus(tokens, description, model)
        except Refused as refused:
            fields = (*refused.fields, "tokenizer")
            raise Refused(refused.code, refused.message, fields) from None

    found = measure_changed_preprocessing(blaming, *files, MODEL, folder)
    assert len(parted(found)) == len(CHANGES) + len(found.refused_pairs)


def test_a_loader_that_trusts_one_field_is_seen(
    files: tuple[Path, Path], folder: Path
) -> None:
    def trusting(tokens: Path, description: Path, model: ModelConfig) -> Corpus:
        described = json.loads(description.read_text())
        own = describe_preprocessing(model.context_tokens)["normalization"]
        described["preprocessing"]["normalization"] = own
        description.write_text(json.dumps(described))
        return load_corpus(tokens, description, model)

    found = measure_changed_preprocessing(trusting, *files, MODEL, folder)
    missed = {row["case_name"] for row in found.refusals if not row["received_reason"]}
    assert missed == {"preprocessing/normalization"}
    # It wrote into the folder that it was given, which is seen as well.
    case = "changed_preprocessing/preprocessing/normalization"
    assert ("comparisons", case) in parted(found)


def test_a_loader_that_refuses_everything_is_seen(
    files: tuple[Path, Path], folder: Path
) -> None:
    def refusing(tokens: Path, description: Path, model: ModelConfig) -> Corpus:
        tokens.write_bytes(tokens.read_bytes() + b"more")
        return load_corpus(tokens, description, model)

    found = measure_changed_preprocessing(refusing, *files, MODEL, folder)
    touched = [
        row
        for row in found.comparisons
        if row["measure"] == UNTOUCHED and row["first_difference"]
    ]
    assert len(touched) == len(CHANGES)


def test_an_unchanged_artifact_that_is_refused_is_seen(
    files: tuple[Path, Path], folder: Path
) -> None:
    def refusing(*_: object) -> Corpus:
        raise Refused(ReasonCode.TOKENS_MALFORMED, "never")

    found = measure_changed_preprocessing(refusing, *files, MODEL, folder)
    assert [row["value_count"] for row in found.measurements] == [1]
