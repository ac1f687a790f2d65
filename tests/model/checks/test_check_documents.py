"""Every bad corpus is refused for its own reason; a lenient loader is seen."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from model.checks import documents as checks
from model.checks.bad_corpora import bad_corpora
from model.documents import Document, load_text_manifest
from model.refusal import ReasonCode, Refused


def hidden(pairs: list[dict]) -> list[tuple[str, str]]:
    """The pairs that a verdict would not accept."""
    return [
        (row["first_change"], row["second_change"])
        for row in pairs
        if row["expected_reason"] != row["received_reason"]
        or row["expected_fields"] != row["received_fields"]
        or row["sha256_before"] != row["sha256_after"]
    ]


@pytest.mark.parametrize("context", [3, 12, 256])
def test_every_bad_corpus_is_refused_with_its_reason_at_any_context(
    tmp_path: Path, context: int
) -> None:
    found = checks.measure_refusals(load_text_manifest, tmp_path, context)
    rows, compared = found.refusals, found.comparisons
    assert len(rows) == len({(row["measure"], row["case_name"]) for row in rows})
    parted = {
        row["case_name"]: (row["expected_reason"], row["received_reason"])
        for row in rows
        if row["expected_reason"] != row["received_reason"]
    }
    assert parted == {}
    assert [row for row in compared if row["first_difference"]] == []
    for measure in ("refused_field_named", "corpus_after_refusal"):
        about = {row["case_name"] for row in compared if row["measure"] == measure}
        assert about == {f"{row['measure']}/{row['case_name']}" for row in rows}
    assert hidden(found.refused_pairs) == []
    # every two cases but the one that needs the whole corpus
    assert len(found.refused_pairs) == 21 * 20 // 2 == len(rows) * 10 - 10
    numbers = checks.measure_messages(rows, context)
    assert {row["case_name"]: row["value_count"] for row in numbers} == {
        "overlong": 0,
        "overlong_multibyte": 0,
        "empty": 0,
        "not_utf8": 0,
    }


def test_no_refusal_tells_where_the_bad_corpus_happened_to_lie(tmp_path: Path) -> None:
    rows = checks.measure_refusals(load_text_manifest, tmp_path, 12).refusals
    assert [row for row in rows if str(tmp_path) in row["message"]] == []


def test_a_loader_that_cuts_and_skips_is_seen(tmp_path: Path) -> None:
    """It takes whatever is there, as many loaders in the field do."""

    def lenient(manifest: Path, context_tokens: int) -> Sequence[Document]:
        entries = json.loads(manifest.read_text())
        for entry in entries:
            path = manifest.parent / entry["file"].replace("\0", "")
            if path.is_file():
                path.read_bytes()[: context_tokens - 1]
        return []

    found = checks.measure_refusals(lenient, tmp_path, 12)
    rows = found.refusals
    assert {row["received_reason"] for row in rows} == {None}
    assert len(hidden(found.refused_pairs)) == len(found.refused_pairs)
    numbers = checks.measure_messages(rows, 12)
    assert all(row["value_count"] > 0 for row in numbers)


@pytest.mark.parametrize("spoil", ["normalised.txt", "manifest.json"])
def test_a_loader_that_leaves_something_behind_is_seen(
    tmp_path: Path, spoil: str
) -> None:
    """A cache beside the corpus, or a manifest that was repaired in place."""

    def writing(manifest: Path, context_tokens: int) -> Sequence[Document]:
        file = manifest.with_name(spoil)
        text = file.read_text() if file.exists() else ""
        try:
            return load_text_manifest(manifest, context_tokens)
        finally:
            file.write_text(text + "\n")

    found = checks.measure_refusals(writing, tmp_path, 12)
    rows = found.refusals
    assert all(row["received_reason"] == row["expected_reason"] for row in rows)
    touched = {row["measure"] for row in found.comparisons if row["first_difference"]}
    assert touched == {"corpus_after_refusal"}
    assert len(hidden(found.refused_pairs)) == len(found.refused_pairs)


def test_a_loader_that_stops_at_the_first_document_is_seen(tmp_path: Path) -> None:
    def first_only(manifest: Path, context_tokens: int) -> Sequence[Document]:
        try:
            return load_text_manifest(manifest, context_tokens)
        except Refused as refused:
            first = refused.fields[:1]
            raise Refused(refused.code, refused.message, first) from None

    found = checks.measure_refusals(first_only, tmp_path, 12)
    assert [row for row in found.comparisons if row["first_difference"]] == []
    assert len(hidden(found.refused_pairs)) == len(found.refused_pairs)


def test_a_loader_that_blames_another_document_is_seen(tmp_path: Path) -> None:
    def blaming(manifest: Path, context_tokens: int) -> Sequence[Document]:
        try:
            return load_text_manifest(manifest, context_tokens)
        except Refused as refused:
            moved = [field.replace("1", "2") for field in refused.fields]
            raise Refused(refused.code, refused.message, moved) from None

    found = checks.measure_refusals(blaming, tmp_path, 12)
    named = [row for row in found.comparisons if row["first_difference"]]
    assert len(named) > 15
    assert {row["measure"] for row in named} == {"refused_field_named"}


def test_a_loader_that_refuses_for_another_reason_is_seen(tmp_path: Path) -> None:
    def one_byte_less(manifest: Path, context_tokens: int) -> Sequence[Document]:
        return load_text_manifest(manifest, context_tokens - 1)

    longest = checks.measure_longest(one_byte_less, tmp_path / "strict", 12)
    assert longest["value_count"] == 1
    assert "allowed are 11 tokens" in longest["detail"]
    longest = checks.measure_longest(load_text_manifest, tmp_path / "right", 12)
    assert longest["value_count"] == 0


def test_the_bad_corpora_cover_the_refusals_of_documents_and_splits() -> None:
    codes = {bad.reason for bad in bad_corpora(12)}
    assert codes >= {
        ReasonCode.DOCUMENT_OVERLONG,
        ReasonCode.DOCUMENT_EMPTY,
        ReasonCode.DOCUMENT_NOT_UTF8,
        ReasonCode.DUPLICATE_CONTENT,
        ReasonCode.CONTENT_IN_TWO_SPLITS,
        ReasonCode.GROUP_IN_TWO_SPLITS,
        ReasonCode.DUPLICATE_DOCUMENT_ID,
    }
