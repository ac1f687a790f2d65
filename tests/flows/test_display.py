"""What reaches a terminal is short, safe to read, and the same in a pipe."""

import json

import pytest

from flows.display import print_json, print_table, printable, seconds

DIGEST = "0123456789abcdef" * 4


def test_control_characters_are_spelled_out_and_lines_stay_lines():
    assert printable("a\x1b[31mb\nc\r") == "a\\x1b[31mb\nc\\r"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (DIGEST, DIGEST[:8]),
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02 03:04:05"),
        (0.123456789, "0.123457"),
        (12345678901, "12345678901"),
        (None, ""),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
        ("accept", "accept"),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_a_cell_shows_what_people_compare(value, shown, capsys):
    print_table([{"column": value}], {"column": "heading"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "heading"
    assert lines[1].strip() == shown


@pytest.mark.parametrize(("columns", "lines"), [("20", 4), (None, 2)])
def test_a_table_folds_only_where_a_width_is_known(columns, lines, capsys, monkeypatch):
    """And never a column that is to stay whole."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    row = {"name": "a_long_name", "text": "aaaaaaa bbbbbbb ccccccc"}
    print_table([row], {"name": "name", "text": "text"}, whole=["name"])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == lines
    assert shown[1].startswith("a_long_name  aaaaaaa")


def test_a_table_without_rows_is_its_heading(capsys):
    print_table([], {"a": "first", "b": "second"})
    assert capsys.readouterr().out.split() == ["first", "second"]


def test_json_keeps_text_and_names_what_it_cannot_spell(capsys):
    print_json({"é": [1, None], "path": DIGEST})
    assert json.loads(capsys.readouterr().out) == {"é": [1, None], "path": DIGEST}


def test_durations_are_seconds():
    assert seconds(12_340_000_000) == "12.3 s"
    assert seconds(None) == ""
