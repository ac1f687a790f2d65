"""Documents that carry their own digest."""

import json

import pytest

from warehouse.errors import StoreError
from warehouse.sealed import _indented, canonical_sha256, check_name, seal, unseal


def test_a_sealed_document_comes_back_without_its_digest():
    document = {"b": 1, "a": [True, None, "é"]}
    assert unseal(seal(document)) == document


def test_no_byte_of_a_sealed_document_can_change_unnoticed():
    data = seal({"stage": "train_model", "rows": 12, "name": "é"})
    for place in range(len(data)):
        for bit in (0, 5):
            altered = bytearray(data)
            altered[place] ^= 1 << bit
            with pytest.raises(StoreError):
                unseal(bytes(altered))


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"null", b'{"document_sha256": 1}']
)
def test_what_was_never_sealed_is_refused(data: bytes):
    with pytest.raises(StoreError):
        unseal(data)


def test_the_canonical_digest_ignores_order_and_refuses_nan():
    assert canonical_sha256({"a": 1, "b": 2}) == canonical_sha256({"b": 2, "a": 1})
    assert canonical_sha256({"a": 1}) != canonical_sha256({"a": 1.0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_sha256(float("nan"))


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "",
        "../x",
        "a/b",
        "a\\b",
        "/x",
        "~",
        "a\0b",
        "a" * 121,
        ".hidden",
        "-x",
    ],
)
def test_a_name_that_could_leave_its_folder_is_refused(name: str):
    with pytest.raises(StoreError, match="cannot name a file of the store"):
        check_name("artifact", name)


@pytest.mark.parametrize(
    "name", ["parameters.npz", "prefill-fp32.jaxexport", "a" * 120]
)
def test_ordinary_names_are_accepted(name: str):
    assert check_name("artifact", name) == name


@pytest.mark.parametrize(
    "value",
    [
        *({}, [], {"a": [], "b": {}}, [[[]], {"y": [[], [{}]]}], (1, (2, "3"))),
        {"c": [1, -2, 2.5, -0.0, 1e-7, None, True, False]},
        {"é": 'é"\\\n\x00\ud800', "": "", "b": {"a": 1, "B": 2}},
    ],
)
def test_documents_are_laid_out_as_the_library_lays_them_out(value):
    """Stores of before were written by it, and their seals cover each blank."""
    assert _indented(value, "\n") == json.dumps(value, indent=1, sort_keys=True)
