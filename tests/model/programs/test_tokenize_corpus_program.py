"""The program writes the same artifacts twice, and every row claims 1.1 to 1.5 need."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.config import ModelConfig, fixture_manifest, to_dict
from model.documents import load_text_manifest
from model.programs import tokenize_corpus
from model.reference import tokenizer as reference
from model.refusal import ReasonCode, Refused


def run(out: Path, manifest: Path, context: int) -> Path:
    out.mkdir()
    model = to_dict(ModelConfig(context_tokens=context))
    request = {"out": str(out), "manifest": str(manifest), "model": model}
    tokenize_corpus.main(request, out)
    return out


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    return json.loads((out / "records" / f"{table}.json").read_bytes())


@pytest.fixture(scope="module")
def fixture_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenize")
    return run(folder / "out", fixture_manifest(), 12)


def test_the_token_tables_hold_every_document_in_manifest_order(
    fixture_out: Path,
) -> None:
    documents = load_text_manifest(fixture_manifest(), 12)
    corpus = json.loads((fixture_out / "artifacts/corpus.json").read_bytes())
    with np.load(fixture_out / "artifacts/tokens.npz", allow_pickle=False) as tables:
        for split, count in (("train", 96), ("validation", 32), ("heldout", 32)):
            members = [each for each in documents if each.split == split]
            assert corpus["splits"][split] == [each.document_id for each in members]
            assert tables[split].shape == (count, 13)
            assert tables[split].dtype == np.int32
            assert tables[split].tolist() == [
                reference.document_tokens(each.data, 12) for each in members
            ]
    assert corpus["context_tokens"] == 12
    assert corpus["tokenizer"]["vocabulary_tokens"] == 259


def test_heldout_has_exactly_276_valid_targets(fixture_out: Path) -> None:
    split = {row["split"]: row for row in rows(fixture_out, "splits")}["heldout"]
    assert (split["documents"], split["valid_targets"]) == (32, 276)
    assert split["padded_targets"] == 32 * 12 - 276
    documents = rows(fixture_out, "documents")
    counted = [row["valid_targets"] for row in documents if row["split"] == "heldout"]
    assert sum(counted) == 276
    assert all(row["valid_targets"] == row["document_bytes"] + 1 for row in documents)


def test_a_second_run_writes_the_same_bytes(fixture_out: Path, tmp_path: Path) -> None:
    again = run(tmp_path / "out", fixture_manifest(), 12)
    for name in ("tokens.npz", "corpus.json"):
        first = (fixture_out / "artifacts" / name).read_bytes()
        assert (again / "artifacts" / name).read_bytes() == first
    for path in sorted((fixture_out / "records").iterdir()):
        assert (again / "records" / path.name).read_bytes() == path.read_bytes()


def test_the_committed_digest_is_the_one_that_travels_with_the_tokens(
    fixture_out: Path,
) -> None:
    corpus = json.loads((fixture_out / "artifacts/corpus.json").read_bytes())
    draw = json.loads((fixture_manifest().parent / "draw.json").read_bytes())
    assert corpus["split_sha256"] == draw["splits_sha256"]


def test_token_diagrams_show_a_multibyte_text_and_a_document_of_each_split(
    fixture_out: Path,
) -> None:
    diagrams = rows(fixture_out, "token_diagrams")
    shown = {row["document_id"] for row in diagrams}
    assert shown == {
        "multibyte-sample",
        "train-000",
        "validation-000",
        "heldout-000",
    }
    sample = [row for row in diagrams if row["document_id"] == "multibyte-sample"]
    data = bytes(row["byte_value"] for row in sample if row["token_kind"] == "byte")
    assert data.decode() == "hé€"
    assert [row["position"] for row in sample] == list(range(13))
    assert sum(row["is_valid_target"] for row in sample) == len(data) + 1


@pytest.mark.parametrize("context", [3, 5, 64])
def test_any_context_works_on_a_corpus_that_fits_it(
    tmp_path: Path, context: int
) -> None:
    entries = []
    for split, text in (("train", "é"), ("validation", "b"), ("heldout", "ß")):
        (tmp_path / split).write_bytes(text.encode())
        entries.append(
            {
                "id": split,
                "file": split,
                "split": split,
                "group": text,
                "license": "CC0-1.0",
                "source": "a test",
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }
        )
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(entries))
    out = run(tmp_path / "out", manifest, context)
    assert all(row["first_difference"] == "" for row in rows(out, "comparisons"))
    refusals = rows(out, "refusals")
    assert all(row["expected_reason"] == row["received_reason"] for row in refusals)


def test_a_document_beyond_the_context_stops_the_program(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="allowed are 11 tokens") as refused:
        run(tmp_path / "out", fixture_manifest(), 11)
    assert refused.value.code is ReasonCode.DOCUMENT_OVERLONG
