"""Pairs of changes are counted against what there is, so that none can be dropped."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from warehouse.records.claims import Refusal
from warehouse.records.refusals import (
    CheckpointField,
    RefusedPair,
    StoppedTraining,
)

SETTING = "checkpoint_under_another_setting"
DAMAGED = "damaged_checkpoint"
BOTH = "damaged_checkpoint_under_another_setting"
FIELDS = ("order_seed", "optimizer.beta1", "optimizer.beta2")
CASES = tuple(field.replace(".", "/") for field in FIELDS)
DAMAGES = ("missing", "misshapen", "truncated")


def pair(measure: str, first: str, second: str, **changes: Any) -> RefusedPair:
    named = json.dumps(sorted((first, second)))
    values: dict[str, Any] = {
        "claim": "2.4",
        "measure": measure,
        "first_change": first,
        "second_change": second,
        "expected_reason": "checkpoint_mismatch_beta1",
        "received_reason": "checkpoint_mismatch_beta1",
        "expected_fields": named,
        "received_fields": named,
        "sha256_before": "d",
        "sha256_after": "d",
    }
    return RefusedPair(**{**values, **changes})


def single(measure: str, case: str, reason: str, claim: str = "2.4") -> Refusal:
    return Refusal(
        claim=claim,
        measure=measure,
        case_name=case,
        expected_reason=reason,
        received_reason=reason,
        message="No.",
    )


@pytest.fixture
def records() -> list[Any]:
    """Three fields, three damages, and every pair of them that can be made."""
    return [
        *(CheckpointField(field=name, recorded_value="1") for name in FIELDS),
        *(single(SETTING, case, "checkpoint_mismatch_beta1") for case in CASES),
        *(single(DAMAGED, case, "checkpoint_damaged") for case in DAMAGES),
        *(pair(SETTING, *two) for two in itertools.combinations(CASES, 2)),
        *(pair(BOTH, *two) for two in itertools.product(CASES, DAMAGES)),
        # of a truncated file only the file is named
        pair(DAMAGED, "missing", "misshapen"),
    ]


@pytest.fixture
def counted(made, opened) -> Callable[[list], dict[tuple[str, str], int]]:
    def count(rows: list) -> dict[tuple[str, str], int]:
        made.execute("certify_recovery", rows)
        found = opened().execute(
            "select measure, case_name, value_count from derived_measurements"
        )
        return {(measure, case): value for measure, case, value in found.fetchall()}

    return count


def test_every_pair_is_counted_once(counted, records):
    assert counted(records) == {
        ("recounted_pairs_named", SETTING): 3,
        ("recounted_pairs_hidden_or_missing", SETTING): 0,
        ("recounted_pairs_named", BOTH): 9,
        ("recounted_pairs_hidden_or_missing", BOTH): 0,
        ("recounted_pairs_named", DAMAGED): 1,
        ("recounted_pairs_hidden_or_missing", DAMAGED): 0,
    }


@pytest.mark.parametrize("measure", [SETTING, BOTH, DAMAGED])
def test_a_dropped_pair_is_missing(counted, records, measure):
    dropped = next(
        row
        for row in records
        if getattr(row, "measure", "") == measure and isinstance(row, RefusedPair)
    )
    records.remove(dropped)
    found = counted(records)
    assert found["recounted_pairs_hidden_or_missing", measure] == 1


def test_a_field_that_is_never_changed_misses_all_its_pairs(counted, records):
    """The fields are those of the checkpoint, whatever the check has changed."""
    records.append(CheckpointField(field="numerics.jaxlib", recorded_value="1"))
    found = counted(records)
    assert found["recounted_pairs_hidden_or_missing", SETTING] == 3
    assert found["recounted_pairs_hidden_or_missing", BOTH] == 3
    assert found["recounted_pairs_named", SETTING] == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"received_fields": '["optimizer/beta1"]'},
        {"received_fields": '["optimizer/beta1", "optimizer/beta2", "order_seed"]'},
        {"received_fields": None},
        {"received_reason": None},
        {"received_reason": "checkpoint_mismatch_beta2"},
        {"sha256_after": "e"},
        {"first_change": "optimizer/beta3"},
    ],
    ids=["hidden", "too-many", "no-field", "accepted", "code", "touched", "misspelt"],
)
def test_a_pair_that_is_wrong_in_one_way_is_not_counted(counted, records, changes):
    right = pair(SETTING, "optimizer/beta1", "optimizer/beta2")
    wrong = pair(SETTING, "optimizer/beta1", "optimizer/beta2", **changes)
    records[records.index(right)] = wrong
    found = counted(records)
    assert found["recounted_pairs_named", SETTING] == 2
    # A misspelt pair is one too many, and the right one is missing beside it.
    missing = 2 if "first_change" in changes else 1
    assert found["recounted_pairs_hidden_or_missing", SETTING] == missing


def test_a_right_row_beside_a_wrong_one_does_not_hide_it(counted, records):
    records.append(pair(SETTING, "optimizer/beta1", "optimizer/beta2", sha256_after=""))
    assert counted(records)["recounted_pairs_hidden_or_missing", SETTING] == 1


def test_targets_pair_across_their_kinds_and_settings_of_tokens_all(counted):
    targets = (
        ("dtype", "targets_dtype"),
        ("real_numbers", "targets_dtype"),
        ("shape", "targets_shape"),
    )
    settings = ("tokenizer/name", "tokenizer/version", "model/context_tokens")
    rows = [
        *(single("malformed_targets", *case, claim="1.11") for case in targets),
        *(
            single("changed_preprocessing", case, "context_changed", claim="1.6")
            for case in settings
        ),
    ]
    assert counted(rows) == {
        ("recounted_pairs_named", "malformed_targets"): 0,
        ("recounted_pairs_hidden_or_missing", "malformed_targets"): 2,
        ("recounted_pairs_named", "changed_preprocessing"): 0,
        ("recounted_pairs_hidden_or_missing", "changed_preprocessing"): 3,
    }


def test_bad_corpora_pair_across_two_claims_but_for_an_empty_split(counted):
    rows = [
        single("bad_document", "empty", "document_empty", claim="1.4"),
        single("bad_manifest", "unknown_field", "unknown_split", claim="1.4"),
        single("bad_manifest", "split_empty", "split_empty", claim="1.4"),
        single("overlapping_splits", "id", "duplicate_document_id", claim="1.5"),
    ]
    two = ("bad_manifest/unknown_field", "bad_document/empty")
    found = counted([*rows, pair("bad_corpus", *two, claim="1.4")])
    assert found == {
        ("recounted_pairs_named", "bad_corpus"): 1,
        ("recounted_pairs_hidden_or_missing", "bad_corpus"): 2,
    }


def stopped(**changes: Any) -> StoppedTraining:
    values: dict[str, Any] = {
        "case_name": "loss",
        "run_label": "non-finite loss",
        "process_id": 7,
        "stopped_at_update": 3,
        "stop_reason": "non_finite_loss",
        "message": "The loss of update 3 is nan.",
        "traced_updates": 2,
        "last_good_update": 2,
        "committed_sha256": "d",
        "kept_sha256": "d",
    }
    return StoppedTraining(**{**values, **changes})


def test_a_training_that_stopped_is_kept_with_all_that_it_owes(counted):
    assert counted([stopped()]) == {("recounted_stopped_trainings", "loss"): 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"kept_sha256": "e"},
        {"kept_sha256": None, "committed_sha256": None, "last_good_update": None},
        {"stopped_at_update": None},
        {"stopped_at_update": 4},
        {"stop_reason": None},
        {"stop_reason": "non_finite_gradient"},
        {"message": ""},
        {"traced_updates": 1},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_training_of_which_something_is_lost_does_not_count(counted, changes):
    assert counted([stopped(**changes)]) == {("recounted_stopped_trainings", "loss"): 0}
