"""What controllers answered to their launcher, beside what they had to answer.

A name in a request proves nothing: who took part is what runtimes, systems and files
said, with the nonce that each controller alone was given.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.gang import GangRun
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.controllers import ControllerAnswer

CLAIM = "5.9"
ANSWER = "artifacts/answer.json"
ALONE_IN_A_GANG = ("process_index", "nonce")

Seats = Sequence[Mapping[str, Any]]


def answer_rows(gang: str, seats: Seats, run: GangRun) -> list[Any]:
    """Returns the rows of claim 5.9 about one gang, and each answer.

    Args:
        gang: Name of the gang.
        seats: What each controller was asked.
        run: How it ended.
    """
    answers = [_answer(each.out) for each in run.runs]
    rows: list[Any] = []
    for number, (seat, answer) in enumerate(zip(seats, answers, strict=True)):
        if answer is not None:
            rows.append(_record(gang, seat, answer))
            rows += _comparisons(gang, number, seat, answer, answers)
    silent = sum(answer is None for answer in answers)
    counts = (
        ("rehearsed_controllers_silent", silent, "controllers"),
        ("rehearsed_answers_repeated", _repeated(answers), "controllers"),
        ("rehearsed_updates_unanswered", _unanswered(run, answers), "updates"),
    )
    return rows + [
        Measurement(
            claim=CLAIM, measure=measure, case_name=gang, value_count=value, unit=unit
        )
        for measure, value, unit in counts
    ]


def _answer(out: Path) -> dict[str, Any] | None:
    try:
        answer = json.loads((out / ANSWER).read_text())
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _record(
    gang: str, seat: Mapping[str, Any], answer: Mapping[str, Any]
) -> ControllerAnswer:
    return ControllerAnswer(
        gang=gang,
        given_index=seat["process"],
        given_count=seat["processes"],
        given_nonce=seat["nonce"],
        demanded_code_sha256=seat["code_sha256"],
        **answer,
    )


def _comparisons(
    gang: str,
    number: int,
    seat: Mapping[str, Any],
    answer: Mapping[str, Any],
    answers: Sequence[Mapping[str, Any] | None],
) -> list[Comparison]:
    devices = sum(each["local_device_count"] for each in answers if each is not None)
    pairs = {
        # Drawn anew for each gang: as a row, it may part no run from another.
        "nonce": (
            "the nonce that it was given",
            "the nonce that it was given"
            if answer["nonce"] == seat["nonce"]
            else f"another nonce, {answer['nonce']}",
        ),
        "code": (seat["code_sha256"], answer["code_sha256"]),
        "place": (
            f"controller {seat['process']}",
            f"controller {answer['process_index']}",
        ),
        "processes": (str(seat["processes"]), str(answer["process_count"])),
        "devices": (
            f"{devices} {seat['platform']}",
            f"{answer['global_device_count']} {answer['platform']}",
        ),
    }
    return [
        Comparison(
            claim=CLAIM,
            measure="rehearsed_answer",
            case_name=f"{gang}/controller-{number}/{name}",
            expected=expected,
            measured=measured,
            expected_from="the launcher, and all devices that controllers have",
            first_difference=""
            if expected == measured
            else f"expected {expected}, answered {measured}",
        )
        for name, (expected, measured) in pairs.items()
    ]


def _repeated(answers: Sequence[Mapping[str, Any] | None]) -> int:
    """Returns how many controllers repeat what only one of a gang can have."""
    given = [answer for answer in answers if answer is not None]
    seen = [Counter(answer[name] for answer in given) for name in ALONE_IN_A_GANG]
    seen.append(Counter((answer["host"], answer["process_id"]) for answer in given))
    return max((len(given) - len(counter) for counter in seen), default=0)


def _unanswered(run: GangRun, answers: Sequence[Mapping[str, Any] | None]) -> int:
    """Returns how many updates no answering controller of the same process made.

    A controller that completed and made none at all counts as one.
    """
    unanswered = 0
    for each, answer in zip(run.runs, answers, strict=True):
        file = each.out / "records" / "controller_updates.json"
        rows = json.loads(file.read_text()) if file.exists() else []
        nonce = None if answer is None else answer["nonce"]
        unanswered += sum(row["nonce"] != nonce for row in rows)
        # Who came to the end without one shows no update that anybody answered for.
        unanswered += not rows and each.return_code == 0
    return unanswered
