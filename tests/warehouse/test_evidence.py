"""Parquet: equal rows give equal bytes, and what was written is what is read."""

import pytest

from warehouse.errors import RecordError
from warehouse.evidence import from_parquet, schema_difference, to_parquet
from warehouse.records.claims import Comparison, Measurement


def rows(count: int) -> list[Measurement]:
    return [
        Measurement(
            claim="3.1",
            measure="largest_difference",
            case_name=f"int8/{number:02}",
            value_real=number / 7,
            unit="1",
        )
        for number in range(count)
    ]


def test_equal_rows_give_equal_bytes():
    assert to_parquet(Measurement, rows(50)) == to_parquet(Measurement, rows(50))


def test_one_other_bit_of_one_value_gives_other_bytes():
    changed = rows(50)
    changed[7] = Measurement(**{**vars(changed[7]), "value_real": 1.0000000000000002})
    assert to_parquet(Measurement, changed) != to_parquet(Measurement, rows(50))


def test_rows_come_back_as_they_were_written_in_order():
    table = from_parquet(to_parquet(Measurement, rows(50)))
    assert [Measurement(**row) for row in table.to_pylist()] == rows(50)


def test_no_rows_are_a_table_with_all_its_columns():
    table = from_parquet(to_parquet(Measurement, []))
    assert table.num_rows == 0
    assert schema_difference(Measurement, table) == ""


def test_the_table_of_another_class_is_told_apart_by_its_columns():
    table = from_parquet(to_parquet(Measurement, rows(1)))
    assert "'expected'" in schema_difference(Comparison, table)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not Parquet at all", b"\0" * 1000])
def test_bytes_that_are_no_parquet_are_refused_in_a_sentence(data: bytes):
    with pytest.raises(RecordError, match="not a Parquet file"):
        from_parquet(data)
