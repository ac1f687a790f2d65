"""Malformed targets are refused where they really come in, and a row says where not."""

from pathlib import Path

import numpy as np
import pytest

from model import evaluation, objective, training_loop
from model.checks import targets
from model.checks.refused import RefusalRows
from model.config import ModelConfig
from model.objective import check_documents
from model.parameters import Parameters, initial_parameters
from model.refusal import Refused
from tests.judged import REVISE, verdict

MODEL = ModelConfig(context_tokens=6, width=12, feed_forward_width=16)
STAGE = "evaluate_heldout"
PLACES = {"training": training_loop, "evaluation": evaluation}


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return initial_parameters(MODEL, 2)


def measured(parameters: Parameters) -> RefusalRows:
    return targets.measure_malformed_targets(targets.entries(parameters, MODEL))


def judged(folder: Path, found: RefusalRows) -> str:
    rows = [row for table in found.tables().values() for row in table]
    return verdict(folder, STAGE, rows)


def parted(found: RefusalRows) -> set[str]:
    """Cases that a verdict would not accept, pairs as their first change."""
    singles = [*found.refusals, *found.comparisons]
    cases = {
        row["case_name"]
        for row in singles
        if row.get("expected_reason", row.get("expected"))
        != row.get("received_reason", row.get("measured"))
    }
    return cases | {
        row["first_change"]
        for row in found.refused_pairs
        if row["expected_reason"] != row["received_reason"]
        or row["expected_fields"] != row["received_fields"]
        or row["sha256_before"] != row["sha256_after"]
    }


def test_every_malformed_target_is_refused_with_its_code_at_every_place(
    parameters: Parameters, tmp_path: Path
) -> None:
    found = measured(parameters)
    assert parted(found) == set()
    assert len(found.refusals) == 6 + 6 + 4
    codes = {row["received_reason"] for row in found.refusals}
    assert codes == {"targets_dtype", "targets_shape", "targets_range"}
    # what it named, and whether it touched a byte
    assert len(found.comparisons) == 2 * len(found.refusals)
    assert len(found.refused_pairs) == 12 + 12 + 4
    assert judged(tmp_path, found).startswith("accept")


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_no_longer_asks_is_revised(
    parameters: Parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The function that refuses is as it was; nobody calls it there."""
    monkeypatch.setattr(PLACES[place], "check_documents", lambda *_: None)
    found = measured(parameters)
    cases = {case.removeprefix(f"{targets.TARGETS}/") for case in parted(found)}
    assert {case.partition("/")[0] for case in cases} == {place}
    assert {f"{place}/below_range", f"{place}/above_range"} <= cases
    assert judged(tmp_path, found) == REVISE


def test_a_loss_that_no_longer_looks_at_its_targets_is_revised(
    parameters: Parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objective, "_wrong_form", lambda *_: {})
    assert judged(tmp_path, measured(parameters)) == REVISE


def test_a_check_that_takes_the_shape_from_the_documents_is_revised(
    parameters: Parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against themselves, documents have the right shape, whatever it is."""

    def of_itself(tokens: np.ndarray, vocabulary: int, _: int) -> None:
        check_documents(tokens, vocabulary, tokens.shape[-1] - 1)

    monkeypatch.setattr(evaluation, "check_documents", of_itself)
    assert judged(tmp_path, measured(parameters)) == REVISE


def test_a_check_that_stops_at_the_first_kind_hides_the_second(
    parameters: Parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_only(*given: object) -> None:
        try:
            check_documents(*given)  # type: ignore[arg-type]
        except Refused as refused:
            first = refused.fields[:1]
            raise Refused(refused.code, refused.message, first) from None

    for place in PLACES.values():
        monkeypatch.setattr(place, "check_documents", first_only)
    found = measured(parameters)
    hidden = [
        row
        for row in found.refused_pairs
        if row["expected_fields"] != row["received_fields"]
    ]
    assert len(hidden) == 24


def test_a_check_that_clips_its_argument_is_seen(
    parameters: Parameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clipping(tokens: np.ndarray, vocabulary: int, context: int) -> None:
        try:
            check_documents(tokens, vocabulary, context)
        finally:
            np.clip(tokens, 0, vocabulary - 1, out=tokens)

    monkeypatch.setattr(evaluation, "check_documents", clipping)
    found = measured(parameters)
    touched = {
        row["case_name"]
        for row in found.comparisons
        if row["expected"] != row["measured"]
    }
    kinds = ("below_range", "above_range")
    assert touched == {f"malformed_targets/evaluation/{kind}" for kind in kinds}
    assert judged(tmp_path, found) == REVISE
