"""Rules of single records, and the reason codes they may carry."""

import pytest

from model.refusal import ReasonCode
from warehouse.errors import RecordError
from warehouse.reading import record_classes
from warehouse.reasons import REASONS
from warehouse.records.claims import Measurement


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"value_count": 1, "value_real": 1.0},
        {"value_count": 1, "reason": "target_absent"},
        {"value_real": 1.0, "reason": "target_absent"},
    ],
)
def test_a_measurement_is_exactly_one_value_or_one_reason(values: dict):
    with pytest.raises(RecordError, match="exactly one of them must be set"):
        Measurement(claim="1.1", measure="errors", unit="errors", **values)


def test_zero_is_a_value():
    row = Measurement(claim="1.1", measure="errors", unit="errors", value_count=0)
    assert row.value_count == 0


def test_every_reason_of_the_model_is_known_to_the_warehouse():
    unknown = sorted({code.value for code in ReasonCode} - set(REASONS))
    assert unknown == []


def test_every_reason_code_is_a_snake_case_word_with_a_sentence():
    assert all(code.isidentifier() and code == code.lower() for code in REASONS)
    assert all(text.endswith(".") and text[0].isupper() for text in REASONS.values())


def test_record_classes_are_found_by_their_table_without_a_list():
    classes = record_classes()
    assert classes["measurements"] is Measurement
    assert all(name == kind.TABLE for name, kind in classes.items())
