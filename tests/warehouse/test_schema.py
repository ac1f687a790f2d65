"""Record declarations: schema, checks and documentation come from one place."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pyarrow
import pytest

from warehouse.errors import RecordError
from warehouse.load import LEDGER_CLASSES
from warehouse.reading import record_classes
from warehouse.schema import (
    arrow_schema,
    check_records,
    columns,
    field_documentation,
    null_when,
    record_from,
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A row with a column of every kind."""

    TABLE: ClassVar[str] = "samples"

    name: str
    """A text, written
    over two lines."""
    steps: int
    """A whole number."""
    loss_nats: float
    """A real number."""
    is_valid: bool
    """A truth value."""
    margin: Annotated[float | None, null_when("there is no limit")] = None
    """A real number that may be missing."""


def sample(**changes: object) -> Sample:
    values = {"name": "a", "steps": 1, "loss_nats": 0.5, "is_valid": True}
    return Sample(**{**values, **changes})  # type: ignore[arg-type]


def test_the_arrow_schema_says_type_and_nullability_of_every_field():
    assert arrow_schema(Sample) == pyarrow.schema(
        [
            pyarrow.field("name", pyarrow.string(), nullable=False),
            pyarrow.field("steps", pyarrow.int64(), nullable=False),
            pyarrow.field("loss_nats", pyarrow.float64(), nullable=False),
            pyarrow.field("is_valid", pyarrow.bool_(), nullable=False),
            pyarrow.field("margin", pyarrow.float64(), nullable=True),
        ]
    )


def test_the_sentence_under_a_field_is_read_as_its_meaning():
    assert field_documentation(Sample)["name"] == "A text, written over two lines."
    assert columns(Sample)[4].null_circumstance == "there is no limit"


@pytest.mark.parametrize("kind", [*record_classes().values(), *LEDGER_CLASSES])
def test_every_field_of_every_table_has_a_sentence(kind: type):
    undocumented = [column.name for column in columns(kind) if not column.meaning]
    unfinished = [c.name for c in columns(kind) if not c.meaning.endswith(".")]
    assert undocumented == []
    assert unfinished == []


@pytest.mark.parametrize("kind", [*record_classes().values(), *LEDGER_CLASSES])
def test_no_field_has_the_name_of_a_column_that_the_loader_adds(kind: type):
    added = {"stage", "row_number"} if kind in record_classes().values() else set()
    assert added.isdisjoint(column.name for column in columns(kind))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"loss_nats": float("nan")}, "not finite"),
        ({"loss_nats": float("inf")}, "not finite"),
        ({"margin": float("-inf")}, "not finite"),
        ({"loss_nats": None}, "null where null is never allowed"),
        ({"name": None}, "null where null is never allowed"),
        ({"name": 3}, "int where text is declared"),
        ({"name": "\ud800"}, "lone surrogate"),
        ({"steps": 1.0}, "float where integer is declared"),
        ({"steps": True}, "bool where integer is declared"),
        ({"steps": 2**63}, "64-bit"),
        ({"is_valid": 1}, "int where boolean is declared"),
        ({"loss_nats": "0.5"}, "str where real is declared"),
    ],
)
def test_a_value_against_its_declaration_is_refused_with_row_and_meaning(
    changes: dict[str, object], said: str
):
    good = [sample(name=str(number)) for number in range(3)]
    with pytest.raises(RecordError, match="of row 3 is") as caught:
        check_records(Sample, [*good, sample(**changes)])
    assert said in str(caught.value)
    assert f"Sample.{next(iter(changes))}" in str(caught.value)


def test_values_at_the_edges_are_accepted():
    rows = [
        sample(steps=2**63 - 1, loss_nats=0.0, margin=None, name=""),
        sample(steps=-(2**63), loss_nats=1e308, margin=-0.0, name="é\u0301\U0001f600"),
        sample(loss_nats=3),  # a whole number is a real number
    ]
    check_records(Sample, rows)
    assert record_from(Sample, vars(rows[0])) == rows[0]


def test_a_row_with_an_unknown_or_missing_field_is_refused_by_name():
    with pytest.raises(RecordError, match=r"unknown fields \['los'\] and lacks \['los"):
        record_from(Sample, {"name": "a", "steps": 1, "los": 0.5, "is_valid": True})


def test_a_type_that_no_column_has_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Bad:
        """A row with a list."""

        TABLE: ClassVar[str] = "bad"
        values: list[int]
        """Several numbers."""

    with pytest.raises(RecordError, match=r"Bad\.values is declared as list\[int\]"):
        columns(Bad)


def test_null_without_a_circumstance_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Bad:
        """A row that may be null for no reason."""

        TABLE: ClassVar[str] = "bad"
        value: int | None
        """A number."""

    with pytest.raises(RecordError, match="null_when"):
        columns(Bad)
