"""A manifest is checked whole, and whatever is wrong is refused in one sentence."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model import manifest
from model.manifest import SPLITS, ManifestEntry
from model.reference import manifest as reference
from model.refusal import ReasonCode, Refused

Entries = list[dict[str, Any]]


def entry(number: int, **changes: str) -> dict[str, Any]:
    values = {
        "id": f"d{number}",
        "file": f"d{number}.txt",
        "split": SPLITS[number % 3],
        "group": f"g{number}",
        "license": "CC0-1.0",
        "source": "a test",
        "sha256": f"{number:064x}",
    }
    return values | changes


def refusal_of(path: Path) -> Refused:
    with pytest.raises(Refused) as refused:
        manifest.read_manifest(path)
    assert "\n" not in refused.value.message
    return refused.value


def write(folder: Path, value: Any) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_a_good_manifest_is_read_in_its_order(tmp_path: Path) -> None:
    values = [entry(number) for number in (2, 0, 1, 5)]
    entries = manifest.read_manifest(write(tmp_path, values))
    assert [vars(each) for each in entries] == values


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", ReasonCode.MANIFEST_MALFORMED, "not JSON"),
        (b"{}", ReasonCode.MANIFEST_MALFORMED, "holds a JSON object"),
        (b"[1]", ReasonCode.MANIFEST_MALFORMED, "entry 0 is 1"),
        (b"\xff[]", ReasonCode.MANIFEST_MALFORMED, "byte offset 0"),
        (b"[" * 100_000, ReasonCode.MANIFEST_MALFORMED, "nested too deep"),
        (b'[{"id":"a","id":"b"}]', ReasonCode.MANIFEST_MALFORMED, "stands twice"),
        (b"[" + b"9" * 5000 + b"]", ReasonCode.MANIFEST_MALFORMED, "not JSON"),
        (b"[]", ReasonCode.SPLIT_EMPTY, "'train' has no document"),
        (b"[{}]", ReasonCode.MANIFEST_MALFORMED, "lacks the field 'id'"),
    ],
)
def test_a_file_that_is_no_list_of_documents_is_refused(
    tmp_path: Path, content: bytes, code: ReasonCode, words: str
) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    refused = refusal_of(path)
    assert refused.code is code
    assert words in refused.message


def test_a_missing_manifest_and_a_folder_in_its_place_have_their_own_codes(
    tmp_path: Path,
) -> None:
    assert refusal_of(tmp_path / "absent.json").code is ReasonCode.MANIFEST_MISSING
    assert refusal_of(tmp_path).code is ReasonCode.MANIFEST_UNREADABLE


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"split": "test"}, ReasonCode.UNKNOWN_SPLIT, "allowed are train, validation"),
        ({"language": "en"}, ReasonCode.MANIFEST_UNKNOWN_FIELD, "'language'"),
        ({"id": ""}, ReasonCode.MANIFEST_MALFORMED, "has id ''"),
        ({"id": None}, ReasonCode.MANIFEST_MALFORMED, "has id None"),
        ({"group": ["a"]}, ReasonCode.MANIFEST_MALFORMED, "has group ['a']"),
        ({"id": "a\nb"}, ReasonCode.MANIFEST_MALFORMED, "printable"),
        ({"id": "\ud800"}, ReasonCode.MANIFEST_MALFORMED, "printable"),
        ({"sha256": "A" * 64}, ReasonCode.MANIFEST_MALFORMED, "lower-case"),
        ({"sha256": "0" * 63}, ReasonCode.MANIFEST_MALFORMED, "64"),
        ({"id": "d0"}, ReasonCode.DUPLICATE_DOCUMENT_ID, "file 'd0.txt'"),
        ({"sha256": f"{0:064x}"}, ReasonCode.CONTENT_IN_TWO_SPLITS, "'d0'"),
        (
            {"sha256": f"{0:064x}", "split": "train"},
            ReasonCode.DUPLICATE_CONTENT,
            "in the split 'train'",
        ),
        ({"group": "g0"}, ReasonCode.GROUP_IN_TWO_SPLITS, "'g0'"),
    ],
)
def test_a_spoilt_entry_is_refused_for_its_own_reason(
    tmp_path: Path, changes: dict[str, Any], code: ReasonCode, words: str
) -> None:
    values = [entry(0), entry(1), entry(2), entry(4) | changes]
    refused = refusal_of(write(tmp_path, values))
    assert refused.code is code
    assert words in refused.message


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_without_documents_is_refused_by_name(
    tmp_path: Path, split: str
) -> None:
    values = [entry(number) for number in range(3)]
    refused = refusal_of(write(tmp_path, [v for v in values if v["split"] != split]))
    assert refused.code is ReasonCode.SPLIT_EMPTY
    assert repr(split) in refused.message


def test_one_group_may_hold_several_documents_of_one_split(tmp_path: Path) -> None:
    values = [entry(0), entry(1), entry(2), entry(3, group="g0")]
    assert len(manifest.read_manifest(write(tmp_path, values))) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    value=JSON
    | st.lists(
        st.fixed_dictionaries(
            {name: st.text() | JSON for name in entry(0)},
            optional={"more": JSON},
        ),
        max_size=3,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_json_is_refused_with_a_reason_and_never_crashes(
    tmp_path: Path, value: Any
) -> None:
    refused = refusal_of(write(tmp_path, value))
    assert refused.code in ReasonCode


NAMES = st.text(min_size=1, max_size=8)


@given(
    rows=st.lists(
        st.tuples(NAMES, st.sampled_from(SPLITS), NAMES, st.binary(max_size=4)),
        max_size=8,
    )
)
def test_split_digests_are_those_of_the_reference(
    rows: list[tuple[str, str, str, bytes]],
) -> None:
    entries = [
        ManifestEntry(
            id=name,
            file="f",
            split=split,
            group=group,
            license="l",
            source="s",
            sha256=hashlib.sha256(data).hexdigest(),
        )
        for name, split, group, data in rows
    ]
    for split in SPLITS:
        expected = reference.split_sha256(entries, [row[3] for row in rows], split)
        assert manifest.split_sha256(entries, split) == expected


SWAPPED = [
    pytest.param(lambda values: values[0].update(id="other"), id="id"),
    pytest.param(lambda values: values[0].update(group="other"), id="group"),
    pytest.param(lambda values: values[0].update(sha256="f" * 64), id="content"),
    pytest.param(lambda values: values[0].update(split="validation"), id="split"),
    pytest.param(lambda values: values.reverse(), id="order"),
]


@pytest.mark.parametrize("change", SWAPPED)
def test_the_digest_of_the_splits_changes_with_anything_that_is_trained_on(
    change: Callable[[Entries], None],
) -> None:
    def digest(values: Entries) -> str:
        return manifest.splits_sha256([ManifestEntry(**value) for value in values])

    values = [entry(number, split="train") for number in range(2)]
    before = digest(values)
    change(values)
    assert digest(values) != before


def test_the_reference_counts_values_that_lie_in_two_splits() -> None:
    values = ["a", "b", "a", "c", "c", "a", "b"]
    splits = ["train", "train", "heldout", "train", "train", "validation", "heldout"]
    assert reference.repeated_across_splits(values, splits) == 2
