"""Counts, sets and orders: nothing counted, nothing paired, or another order.

A count of differences is 0 where nothing was compared, so each such count stands beside
one of what was compared, or an absent side counts itself.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.checks import controllers, splits
from model.checks.cache import differing_bytes, differing_logits
from model.checks.draws import Consumed
from model.checks.endpoints import _digest, _without_effect
from model.checks.objective import measure_padded_document
from model.checks.target_restart import TRAININGS, HostTrainings
from model.checks.tokens import measure_targets
from model.presets import fixture
from model.programs.reload_endpoints import generation_rows
from model.target_result import RESTORED_UPDATE, TRAINED_UPDATES
from tasks.controller_answers import _repeated, _unanswered
from tasks.gang import GangRun
from tests.comparators import INVALID, MET, UNMET, statuses
from tests.judged import verdict

ANSWER = {"process_index": 0, "nonce": "n0", "host": "here", "process_id": 7}


def test_controllers_that_made_no_update_agree_on_none(tmp_path: Path) -> None:
    trained = controllers.Trained(
        program="split", updates=[[], []], trainings=[], arrays=[[], []], devices=2
    )
    arrays = {"parameters/a": np.ones(2), "first_moment/a": np.ones(2)}
    numbers = {"loss_sum_nats": 1.0, "valid_targets": 2}
    owed = [{"update": 1, "state_sha256": "s", **numbers}]
    rows = []
    for expected in (owed, []):
        made = controllers.agreement(
            "split", expected, trained, (arrays, arrays), {"a": np.zeros(2)}
        )
        rows += [row for row in made if row["measure"] == "rehearsed_updates"]
        apart = [row for row in made if row["measure"] == "rehearsed_updates_apart"]
        assert apart[0]["value_count"] == len(expected)
    assert statuses(tmp_path, rows) == [UNMET, UNMET, INVALID, INVALID]
    assert controllers.same_states("5.12", "restart", "same", owed, [[], []]) == []


@pytest.mark.parametrize(
    ("answers", "repeated"),
    [
        ([ANSWER, {**ANSWER, "process_index": 1, "nonce": "n1", "process_id": 8}], 0),
        ([ANSWER, ANSWER], 1),
        ([ANSWER, {**ANSWER, "process_index": 1, "nonce": "n1"}], 1),
        ([ANSWER, {**ANSWER, "process_id": 8, "nonce": "n1"}], 1),
        ([ANSWER, {**ANSWER, "process_id": 8, "process_index": 1}], 1),
        # counted as silent, each of them
        ([None, None], 0),
    ],
)
def test_answers_are_a_set_of_as_many(answers: list[Any], repeated: int) -> None:
    assert _repeated(answers) == repeated


@pytest.mark.parametrize(
    ("nonces", "answer", "code", "unanswered"),
    [
        (["n0", "n0"], ANSWER, 0, 0),
        (["n0", "n1"], ANSWER, 0, 1),
        (["n0", "n0"], None, 0, 2),
        ([], ANSWER, 0, 1),
        (None, ANSWER, 0, 1),
        (None, None, 0, 1),
        # killed before it could write one
        (None, ANSWER, -9, 0),
    ],
)
def test_no_update_at_all_is_not_every_update_answered(
    tmp_path: Path, nonces: list[str] | None, answer: Any, code: int, unanswered: int
) -> None:
    class Run:
        out, return_code = tmp_path, code

    if nonces is not None:
        file = tmp_path / "records" / "controller_updates.json"
        file.parent.mkdir()
        file.write_text(json.dumps([{"nonce": nonce} for nonce in nonces]))
    run = GangRun(
        runs=(Run(),),  # type: ignore[arg-type]
        failed=None,
        cause="",
        disturbed_at_ns=None,
        started_at_ns=0,
        ended_at_ns=1,
        processes_left=0,
    )
    assert _unanswered(run, [answer]) == unanswered


def test_a_training_that_consumed_no_key_proves_nothing_of_its_orders(
    tmp_path: Path,
) -> None:
    rows = Consumed().measure(fixture().train, 96)
    assert verdict(tmp_path, "train_model", rows) == "revise"


def test_documents_in_another_order_are_another_table(tmp_path: Path) -> None:
    contents = [b"ab|ba", b"cd|dc"]
    width = 13
    tokens = np.zeros((2, width), np.int32)
    for row, data in enumerate(contents):
        tokens[row, 0] = 1
        tokens[row, 1 : len(data) + 1] = [byte + 3 for byte in data]
        tokens[row, len(data) + 1] = 2
    tables = []
    for order in ([0, 1], [1, 0]):
        rows = measure_targets("train", tokens[order], contents)
        tables += [row for row in rows if row["measure"] == "token_table"]
    assert statuses(tmp_path, tables) == [MET, UNMET]


def test_bytes_without_a_counterpart_differ() -> None:
    """NumPy stretches one byte over all of another string."""
    assert differing_bytes([b"\x00\x80"], [b"\x00\x00"]) == 1
    assert differing_bytes([b"a"], [b"aaa"]) == 2
    assert differing_bytes([b""], [b"aaa"]) == 3
    with pytest.raises(ValueError, match="shorter"):
        differing_bytes([b"a"], [])


def test_endpoints_without_outputs_have_no_digest_to_agree_with() -> None:
    with pytest.raises(ValueError, match="no digest"):
        _digest([])


def trace(folder: Path, step: str, updates: range, digests: bool = True) -> None:
    path = folder / step / "artifacts" / "trace.jsonl"
    path.parent.mkdir(parents=True)
    lines: list[dict[str, Any]] = [
        {"update": RESTORED_UPDATE, "is_start": True, "digests": []}
    ]
    for update in updates:
        told = [{"kind": "order", "sha256": str(update)}] if digests else []
        lines.append({"update": update, "digests": told})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("made", "has_digests", "status"),
    [
        (TRAINED_UPDATES, True, MET),
        (6, True, INVALID),
        (TRAINED_UPDATES, False, INVALID),
    ],
)
def test_an_update_that_no_training_on_the_target_made_was_not_repeated(
    tmp_path: Path, made: int, has_digests: bool, status: str
) -> None:
    """Two traces that both end early are equal in all that they lack."""
    for step in ("trained", "repeated", "resumed"):
        trace(tmp_path, step, range(1, made + 1), has_digests)
    steps = {
        step: {"process_id": number, "return_code": -9}
        for number, step in enumerate(TRAININGS)
    }
    trainings = HostTrainings(tmp_path, steps)
    made_rows = [*trainings.repeated(), *trainings.resumed()]
    rows = {(row["measure"], row["case_name"]): row for row in made_rows}
    last = f"update-{TRAINED_UPDATES:02d}"
    found = [rows[measure, last] for measure in ("repeated_updates", "resumed_updates")]
    assert statuses(tmp_path, found) == [status, status]
    assert len(trainings.updates["trained"]) == (made if has_digests else 0)


def test_logits_that_are_no_numbers_on_both_sides_differ() -> None:
    """Garbage that reaches a cache makes the same NaN of both."""
    ones = np.ones((2, 3), np.float32)
    broken = np.where(np.arange(3) == 1, np.nan, ones).astype(np.float32)
    assert differing_logits(ones, ones.copy()) == 0
    assert differing_logits(broken, broken.copy()) == 2 * 4
    assert differing_logits(ones, broken) > 0
    assert differing_logits(ones, ones[:1]) == 3 * 4
    infinite = np.full((1, 2), np.inf, np.float32)
    assert differing_logits(infinite, infinite.copy()) == 2 * 4


def test_an_empty_split_is_not_disjoint_from_the_others() -> None:
    entry = SimpleNamespace(split="train", id="a", group="g")
    for documents in ([], [SimpleNamespace(entry=entry, data=b"a")]):
        with pytest.raises(ValueError, match="has no document"):
            splits.measure_splits(documents)  # type: ignore[arg-type]


def test_no_gradient_is_not_a_finite_one() -> None:
    with pytest.raises(ValueError, match="no gradient"):
        measure_padded_document({})


def test_an_endpoint_without_parameters_uses_none_of_them() -> None:
    endpoint = SimpleNamespace(name="prefill-fp32", parameters={})
    with pytest.raises(ValueError, match="no parameters"):
        _without_effect(endpoint, ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "found"),
    [(None, []), ([], []), ([5, 2], [0]), ([5, 0], [1]), ([1, 0], [2])],
)
def test_nothing_emitted_is_not_nothing_forbidden(tokens: Any, found: Any) -> None:
    row = {
        "release_policy": "fp32",
        "token_ids": json.dumps(tokens),
        "is_expected": None,
    }
    rows = generation_rows([row] if tokens is not None else [], [])
    counts = [
        each["value_count"]
        for each in rows
        if (each["measure"], each["case_name"]) == ("forbidden_tokens_emitted", "fp32")
    ]
    assert counts == found
