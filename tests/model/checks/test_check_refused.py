"""A refusal counts only when it names exactly what is wrong and touches nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.checks.refused import ACCEPTED, Wrong, pair_row, refused_rows
from model.folders import folder_sha256
from model.refusal import ReasonCode, Refused

CODE = ReasonCode.CHECKPOINT_MISMATCH_JAXLIB
WRONG = Wrong(case="jaxlib", code=CODE, fields=("numerics.jaxlib",))
SENTENCE = "Made with numerics.jaxlib 1, and numerics.jax and numerics.jaxlibs too."


def refusing(*fields: str, text: str = SENTENCE) -> Callable[[], object]:
    def attempt() -> None:
        raise Refused(CODE, text, fields)

    return attempt


def named(attempt: Callable[[], object], wrong: Wrong = WRONG) -> dict:
    _, (row, _) = refused_rows("2.4", "m", wrong, attempt, lambda: "d", "untouched")
    assert row["measure"] == "refused_field_named"
    assert row["case_name"] == f"m/{wrong.case}"
    return row


def test_exactly_the_changed_field_is_what_counts() -> None:
    assert named(refusing("numerics.jaxlib"))["first_difference"] == ""


@pytest.mark.parametrize(
    "fields",
    [
        ("numerics.jaxlib", "numerics.jax"),
        (),
        ("numerics.jax",),
        ("numerics.jaxlibs",),
        ("numerics",),
        ("numerics.jaxlib", "numerics.jaxlib"),
        ("jaxlib",),
    ],
    ids=["one-too-many", "none", "prefix", "longer", "parent", "twice", "last-part"],
)
def test_any_other_set_of_fields_fails(fields: tuple[str, ...]) -> None:
    """Each of these sentences holds the text of the field that was changed."""
    row = named(refusing(*fields))
    assert row["expected"] == '["numerics.jaxlib"]'
    assert row["measured"] != row["expected"]
    assert row["first_difference"]


def test_one_field_too_few_of_two_fails() -> None:
    two = Wrong(case="two", code=CODE, fields=("numerics.jax", "numerics.jaxlib"))
    assert named(refusing("numerics.jaxlib"), two)["first_difference"]
    both = refusing("numerics.jaxlib", "numerics.jax")
    assert named(both, two)["first_difference"] == ""


def test_a_field_that_only_the_data_name_fails() -> None:
    row = named(refusing("numerics.jaxlib", text="Something differs."))
    assert "the sentence lacks numerics.jaxlib" in row["measured"]


def test_an_input_that_is_accepted_names_nothing() -> None:
    row = named(lambda: None)
    assert row["measured"] == ACCEPTED
    assert row["first_difference"]


@pytest.mark.parametrize("name", ["file", "another"])
def test_a_refusal_that_touches_what_it_was_given_is_seen(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("as it was")

    def attempt() -> None:
        (tmp_path / name).write_text("as it is")
        refusing("numerics.jaxlib")()

    def digest() -> str:
        return folder_sha256(tmp_path)

    _, (_, untouched) = refused_rows("2.4", "m", WRONG, attempt, digest, "untouched")
    assert untouched["measure"] == "untouched"
    assert untouched["expected"] != untouched["measured"]
    (tmp_path / "file").write_text("as it was before")
    (tmp_path / "another").unlink(missing_ok=True)
    pair = pair_row("2.4", "m", WRONG, OTHER, attempt, digest)
    assert pair["sha256_before"] != pair["sha256_after"]


OTHER = Wrong(
    case="nproc", code=ReasonCode.CHECKPOINT_MISMATCH_NPROC, fields=("numerics.nproc",)
)


def test_of_two_things_both_are_expected_with_the_code_of_the_first() -> None:
    attempt = refusing("numerics.nproc", "numerics.jaxlib")
    row = pair_row("2.4", "m", WRONG, OTHER, attempt, lambda: "d")
    assert row["expected_reason"] == row["received_reason"] == CODE
    assert row["expected_fields"] == row["received_fields"]
    assert row["sha256_before"] == row["sha256_after"]


def test_of_two_things_one_alone_is_not_what_was_expected() -> None:
    row = pair_row("2.4", "m", WRONG, OTHER, refusing("numerics.nproc"), lambda: "d")
    assert row["received_fields"] == '["numerics.nproc"]'
    assert row["expected_fields"] == '["numerics.jaxlib", "numerics.nproc"]'
    accepted = pair_row("2.4", "m", WRONG, OTHER, lambda: None, lambda: "d")
    assert (accepted["received_reason"], accepted["received_fields"]) == (None, None)
