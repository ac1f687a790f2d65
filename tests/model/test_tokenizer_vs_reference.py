"""The tokenizer against plain loops, on bytes nobody chose by hand."""

from hypothesis import given
from hypothesis import strategies as st

from model import tokenizer
from model.checks.tokens import token_diagram
from model.reference import tokenizer as reference


@given(st.binary(max_size=100))
def test_tokens_are_those_of_the_reference(data: bytes) -> None:
    assert tokenizer.encode(data).tolist() == reference.encode(data)
    assert reference.decode(tokenizer.encode(data).tolist()) == data


@given(st.binary(max_size=30), st.integers(0, 9))
def test_a_document_row_is_that_of_the_reference(data: bytes, room: int) -> None:
    context = len(data) + 1 + room
    row = tokenizer.document_tokens(data, context).tolist()
    assert row == reference.document_tokens(data, context)
    assert reference.valid_targets(data, context) == len(data) + 1


@given(st.binary(max_size=30), st.integers(0, 9))
def test_a_token_diagram_is_that_of_the_reference(data: bytes, room: int) -> None:
    context = len(data) + 1 + room
    diagram = token_diagram("it", tokenizer.document_tokens(data, context))
    assert diagram == reference.token_diagram("it", data, context)


def test_the_diagram_of_a_multibyte_text_is_what_one_writes_by_hand() -> None:
    """Byte, token, kind, input, target and mask of "é" in a context of four."""
    rows = token_diagram("it", tokenizer.document_tokens("é".encode(), 4))
    assert [tuple(row.values())[1:] for row in rows] == [
        (0, None, 1, "BOS", 1, 198, True),
        (1, 195, 198, "byte", 198, 172, True),
        (2, 169, 172, "byte", 172, 2, True),
        (3, None, 2, "EOS", 2, 0, False),
        (4, None, 0, "PAD", None, None, False),
    ]
