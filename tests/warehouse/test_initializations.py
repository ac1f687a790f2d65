"""Seeds are counted in the rows: a missing or silent one is found."""

from warehouse.records.training import Initialization


def initialization(seed: int, **changes: object) -> Initialization:
    fields: dict[str, object] = {
        "is_released": seed == 1,
        "updates": 300,
        "asked_updates": 300,
        "validation_nats_per_token": 1.0,
        "heldout_nats_per_token": 1.0 + seed / 10,
        "heldout_correct_targets": 160,
        "heldout_valid_targets": 276,
        "parameters_sha256": str(seed),
        "failure_reason": None,
    }
    return Initialization(initialization_seed=seed, **{**fields, **changes})


FAILED = {
    "updates": 17,
    "validation_nats_per_token": None,
    "heldout_nats_per_token": None,
    "heldout_correct_targets": None,
    "failure_reason": "non_finite_loss",
}


def counts(connection) -> dict[str, int]:
    return dict(
        connection.execute(
            "select measure, value_count from derived_measurements"
        ).fetchall()
    )


def test_a_failed_seed_counts_and_is_explained(made, opened):
    rows = [initialization(seed) for seed in (1, 2, 3, 4)]
    made.execute("evaluate_heldout", [*rows, initialization(5, **FAILED)])
    made.run("run-1")
    connection = opened()
    assert counts(connection) == {
        "recounted_initializations": 5,
        "recounted_initializations_alike": 0,
        "recounted_initializations_unexplained": 0,
    }
    shown = connection.execute(
        "select initialization_seed, above_best_nats is null from"
        " initialization_results"
    ).fetchall()
    assert shown == [(1, False), (2, False), (3, False), (4, False), (5, True)]


def test_a_repeated_or_silent_seed_is_found(made, opened):
    silent = initialization(2, **{**FAILED, "failure_reason": None})
    early = initialization(3, updates=299)
    rows = [initialization(1), initialization(1), silent, early]
    made.execute("evaluate_heldout", rows)
    assert counts(opened()) == {
        "recounted_initializations": 3,
        "recounted_initializations_alike": 1,
        "recounted_initializations_unexplained": 2,
    }
