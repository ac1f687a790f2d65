"""A refusal says why, in words and as data; several become one that says it all."""

import pytest

from model.refusal import ReasonCode, Refused, joined

FIRST = Refused(ReasonCode.TARGETS_SHAPE, "The shape is wrong.", ["shape"])
SECOND = Refused(ReasonCode.TARGETS_RANGE, "A range is wrong.", ["range", "more"])


def test_several_refusals_are_one_sentence_with_the_code_of_the_first() -> None:
    both = joined([FIRST, SECOND])
    assert both.code == "targets_shape"
    assert both.message == "The shape is wrong; besides, a range is wrong."
    assert both.fields == ("shape", "range", "more")


def test_many_refusals_are_a_sentence_of_a_few_and_all_their_fields() -> None:
    many = joined([FIRST, *[SECOND] * 9])
    assert many.message.count("; besides, ") == 4
    assert many.message.endswith("; and 5 more.")
    assert many.fields == ("shape", *["range", "more"] * 9)


def test_one_refusal_stays_what_it_is() -> None:
    alone = joined([FIRST])
    assert (alone.code, alone.message) == (FIRST.code, FIRST.message)
    assert alone.fields == FIRST.fields


def test_a_code_outside_the_closed_list_is_no_reason() -> None:
    with pytest.raises(ValueError, match="just_because"):
        Refused("just_because", "No.")  # type: ignore[arg-type]


def test_a_refusal_without_fields_names_none() -> None:
    assert Refused(ReasonCode.CACHE_FULL, "Full.").fields == ()
