"""The three forms of an answer."""

import csv
import datetime
import io
import json
import time

import pytest

from warehouse.answers import Answer, render
from warehouse.errors import QueryError

ANSWER = Answer(
    names=("name", "loss_nats", "steps", "day"),
    rows=(
        ("a", 0.1, 12, datetime.date(2026, 1, 2)),
        (None, 1e-12, None, None),
        ('quote " comma, line\nend \x1b[31m', float("nan"), 2**63 - 1, None),
    ),
    is_cut=False,
)


def test_json_is_one_document_with_exact_numbers_and_no_nan():
    found = json.loads(render(ANSWER, "json"), parse_constant=pytest.fail)
    assert found[0] == {"name": "a", "loss_nats": 0.1, "steps": 12, "day": "2026-01-02"}
    assert found[1]["name"] is None
    assert found[2]["steps"] == 2**63 - 1
    assert found[2]["loss_nats"] == "nan"


def test_csv_comes_back_value_by_value():
    lines = list(csv.reader(io.StringIO(render(ANSWER, "csv"))))
    assert lines[0] == list(ANSWER.names)
    assert float(lines[2][1]) == 1e-12
    assert lines[3][0] == ANSWER.rows[2][0]


def test_a_table_is_aligned_counts_its_rows_and_sends_no_control_character():
    text = render(ANSWER, "table")
    lines = text.splitlines()
    assert lines[-1] == "(3 rows)"
    assert "\x1b" not in text
    assert len(lines) == 6
    assert lines[3].startswith("–")
    assert "9223372036854775807" in lines[4]


def test_only_a_table_rounds():
    answer = Answer(names=("a",), rows=((0.123456789,), (-0.0,), (2e6,)), is_cut=False)
    lines = [line.strip() for line in render(answer, "table").splitlines()]
    assert lines[2:5] == ["0.123457", "0", "2000000"]
    assert render(answer, "csv").splitlines()[1] == "0.123456789"


def test_no_rows_are_shown_as_none():
    empty = Answer(names=("a", "b"), rows=(), is_cut=False)
    assert render(empty, "table").splitlines()[-1] == "(0 rows)"
    assert render(empty, "csv") == "a,b"
    assert json.loads(render(empty, "json")) == []


def test_two_columns_of_one_name_stay_two_in_json():
    answer = Answer(names=("a", "a"), rows=((1, 2),), is_cut=False)
    assert json.loads(render(answer, "json")) == [{"a": 1, "a_2": 2}]


def test_an_unknown_format_is_refused():
    with pytest.raises(QueryError, match="'xml' is unknown"):
        render(ANSWER, "xml")  # type: ignore[arg-type]


def test_many_rows_take_time_in_proportion():
    many = Answer(
        names=("a", "b"), rows=tuple((n, str(n)) for n in range(100_000)), is_cut=False
    )
    started = time.process_time()
    assert len(render(many, "table").splitlines()) == 100_003
    assert time.process_time() - started < 5
