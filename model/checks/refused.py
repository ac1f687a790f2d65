"""What became of an input that had to be refused: why, what it named, what it touched.

A refusal counts only with its own reason code, with exactly the things that are wrong
named in its fields and in its sentence, and with every byte that it was given as it
was. Of two things that are wrong at once both must be named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields

from model.checks.rows import Row, comparison
from model.refusal import ReasonCode, Refused

NAMED = "refused_field_named"
ACCEPTED = "accepted"

Attempt = Callable[[], object]
Digest = Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One thing that is wrong with an input, and how its refusal has to read."""

    case: str
    """Name of the case."""
    code: ReasonCode
    """Reason code of the refusal."""
    fields: tuple[str, ...]
    """Paths that the refusal names, these and no other."""
    told: tuple[str, ...] | None = None
    """What its sentence has to hold; the fields where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class RefusalRows:
    """Rows of everything that had to be refused, by their table."""

    refusals: list[Row]
    comparisons: list[Row]
    refused_pairs: list[Row] = field(default_factory=list)
    measurements: list[Row] = field(default_factory=list)

    def tables(self) -> dict[str, list[Row]]:
        """Returns the rows by the name of their table."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def fields_text(paths: Iterable[str]) -> str:
    """Returns paths as one canonical text, so that equal texts are equal sets."""
    return json.dumps(sorted(paths))


def refused_rows(
    claim: str,
    measure: str,
    wrong: Wrong,
    attempt: Attempt,
    digest: Digest,
    untouched: str,
) -> tuple[Row, list[Row]]:
    """Returns a row of ``refusals``, and comparisons of what it named and touched.

    Args:
        claim: Claim that the rows are judged on.
        measure: Name of what has to be refused.
        wrong: What is wrong, and what is expected.
        attempt: Gives the input to the system.
        digest: Digest over every byte that the system is given.
        untouched: Measure of the comparison of those bytes.
    """
    before = digest()
    refused = _refusal_of(attempt)
    row: Row = {
        "claim": claim,
        "measure": measure,
        "case_name": wrong.case,
        "expected_reason": str(wrong.code),
        "received_reason": None if refused is None else str(refused.code),
        "message": "" if refused is None else refused.message,
    }
    case = f"{measure}/{wrong.case}"
    expected, source = fields_text(wrong.fields), "what was changed, and nothing else"
    return row, [
        comparison(claim, NAMED, case, expected, _named(refused, wrong), source),
        untouched_row(claim, untouched, case, before, digest()),
    ]


def untouched_row(claim: str, measure: str, case: str, before: str, after: str) -> Row:
    """Returns a comparison of what a refusing function was given, before and after."""
    return comparison(claim, measure, case, before, after, "digest before the refusal")


def pair_row(
    claim: str,
    measure: str,
    first: Wrong,
    second: Wrong,
    attempt: Attempt,
    digest: Digest,
) -> Row:
    """Returns a row of ``refused_pairs``: two things that are wrong at once.

    Args:
        claim: Claim that the row is judged on.
        measure: Name of what has to be refused.
        first: What the system looks at first; its code is expected.
        second: What must not be hidden by it.
        attempt: Gives the input to the system.
        digest: Digest over every byte that the system is given.
    """
    before = digest()
    refused = _refusal_of(attempt)
    return {
        "claim": claim,
        "measure": measure,
        "first_change": first.case,
        "second_change": second.case,
        "expected_reason": str(first.code),
        "received_reason": None if refused is None else str(refused.code),
        "expected_fields": fields_text({*first.fields, *second.fields}),
        "received_fields": None if refused is None else fields_text(refused.fields),
        "sha256_before": before,
        "sha256_after": digest(),
    }


def _refusal_of(attempt: Attempt) -> Refused | None:
    try:
        attempt()
    except Refused as refused:
        return refused
    return None


def _named(refused: Refused | None, wrong: Wrong) -> str:
    if refused is None:
        return ACCEPTED
    told = wrong.fields if wrong.told is None else wrong.told
    lacking = [text for text in told if text not in refused.message]
    lacks = f", but the sentence lacks {', '.join(lacking)}" if lacking else ""
    return f"{fields_text(refused.fields)}{lacks}"
