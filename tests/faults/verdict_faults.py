"""Faults of the SQL that judges: what is no evidence is taken for some."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.faults import NO_REPORT
from tests.faults.declaring import of_function, of_view

GROUP = "store"
_view = partial(of_view, GROUP)


def _no_invalid_columns(original: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda filled: original(())


FAULTS = (
    _view(
        "verdict-ignores-null",
        *("made_rows", "verdict"),
        "judged_evidence",
        "A measurement that is null counts as met.",
        "duckdb/duckdb-python#257",
        ("when value_count is null and value_real is null then 'missing'", ""),
        (
            "when coalesce(is_met, false) then 'met'",
            "when coalesce(is_met, true) then 'met'",
        ),
    ),
    _view(
        "verdict-over-empty-join",
        *("made_rows", "verdict"),
        "subject_verdicts",
        "A claim without any row has no unmet row and is accepted.",
        "CovertLab/vEcoli#318",
        ("when counted.rows_missing > 0 then 'not demonstrated'", ""),
        ("when coalesce(counted.rows_met, 0) = 0 then 'not demonstrated'", ""),
    ),
    _view(
        "required-cases-not-counted",
        *("made_rows", "verdict"),
        "absent_rows",
        "One row answers for every case that the contract lists.",
        NO_REPORT,
        ("where counted.found_rows < counted.required_count", "where false"),
    ),
    _view(
        "unlisted-cases-dropped",
        *("made_rows", "verdict"),
        "matched_rows",
        "A row of a case that nobody listed is judged by no requirement.",
        NO_REPORT,
        ("or not bool_or(is_own_case)", "and bool_or(is_own_case)"),
    ),
    _view(
        "unit-not-compared",
        *("made_rows", "verdict"),
        "judged_evidence",
        "A count of tokens is held against a limit on errors.",
        "microsoft/perfview#2013",
        ("when not is_same_unit then 'invalid'", ""),
    ),
    _view(
        "integer-compared-as-double",
        *("made_rows", "verdict"),
        "matched_rows",
        "Integers become doubles before they are compared: 2^53 + 1 is 2^53.",
        "pandas-dev/pandas#56678",
        ("evidence.value_count is not null\n                and", "false and"),
    ),
    _view(
        "missing-on-both-sides-equal",
        *("made_rows", "verdict"),
        "judged_evidence",
        "Two digests that are both missing are the same digest.",
        NO_REPORT,
        (
            "when coalesce(expected, '') = '' and coalesce(measured, '') = ''\n"
            "                then 'missing'",
            "",
        ),
        ("when coalesce(expected, '') = '' then 'invalid'", ""),
        (
            "when evidence_kind = 'comparison' and coalesce(measured, '') = ''\n"
            "                then 'invalid'",
            "",
        ),
    ),
    _view(
        "refusal-that-did-not-come",
        *("made_rows", "verdict"),
        "judged_evidence",
        "An input that nobody refused passes as refused.",
        NO_REPORT,
        (
            "when 'refused' then coalesce(expected = measured, false)",
            "when 'refused' then coalesce(expected = measured, true)",
        ),
    ),
    of_function(
        GROUP,
        "nan-in-unjudged-column",
        *("made_rows", "verdict", "warehouse.load._invalid_values_sql"),
        "A NaN in a column that no claim measures is nobody's business.",
        "duckdb/duckdb#3292",
        _no_invalid_columns,
    ),
    _view(
        "evidence-from-other-commit",
        *("subjects", "verdict"),
        "subject_stages",
        "A verdict rests on what another version of the system has shown.",
        "GridTools/gt4py#2599",
        ("inner join runs\n        on links.run_id = runs.run_id", "cross join runs"),
    ),
)
