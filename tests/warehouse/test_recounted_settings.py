"""The settings that a run names are those that its executions were keyed with."""

import pytest

from warehouse.records.training import Evaluation, Update

CONFIG = "config:train.updates"


def counted(connection) -> dict[tuple[str, str], int]:
    found = connection.execute(
        "select measure, case_name, value_count from derived_measurements"
    ).fetchall()
    return {(measure, case): value for measure, case, value in found}


@pytest.mark.parametrize(
    ("components", "apart"),
    [
        ({CONFIG: "300"}, 0),
        ({CONFIG: "3e2"}, 1),
        ({CONFIG: "60"}, 1),
        ({CONFIG: "300", "config:train.batch_documents": "16"}, 1),
        ({"config:train.batch_documents": "16"}, 2),
    ],
)
def test_a_setting_that_differs_or_is_missing_on_either_side_is_counted(
    made, opened, components: dict[str, str], apart: int
):
    """The made-up runs name one setting: 300 updates."""
    made.execute("train_model", [], components=components)
    made.run("run-1")
    assert counted(opened()) == {("recounted_settings_apart", "train"): apart}


def test_every_setting_of_the_selected_run_is_a_row(made, opened):
    made.execute("train_model", [])
    made.run("run-1")
    found = opened().execute("select setting, setting_value from run_settings")
    assert found.fetchall() == [("train.updates", "300")]


def update(number: int) -> Update:
    return Update(
        run_label="uninterrupted",
        update=number,
        epoch=(number - 1) // 2,
        cursor=0,
        loss_nats=1.0,
        valid_targets=1,
        cumulative_valid_targets=number,
        learning_rate=1.0,
        duration_ns=1,
    )


def evaluation(number: int, split: str = "validation") -> Evaluation:
    return Evaluation(
        release_policy="fp32",
        split=split,
        update=number,
        batch_documents=32,
        documents=1,
        loss_sum_nats=1.0,
        valid_targets=1,
        correct_targets=0,
    )


@pytest.mark.parametrize(
    ("every", "evaluated", "missing", "epochs"),
    [
        (2, (0, 2, 4, 5), 0, 0),
        (2, (0, 4, 5), 1, 1),
        (2, (2, 4), 2, 1),
        (3, (0, 3, 5), 0, 1),
        (2, (), 4, 3),
    ],
)
def test_an_evaluation_that_the_rule_asks_for_and_an_epoch_without_one_are_counted(
    made, opened, every: int, evaluated: tuple[int, ...], missing: int, epochs: int
):
    """Five updates, two an epoch; evaluations of another split do not count."""
    rows = [update(number) for number in range(1, 6)]
    rows += [evaluation(number) for number in evaluated]
    rows += [evaluation(number, "heldout") for number in range(6)]
    components = {"config:train.evaluate_every_updates": str(every)}
    made.execute("train_model", rows, components=components)
    found = counted(opened())
    assert found["recounted_validations_missing", ""] == missing
    assert found["recounted_epochs_without_validation", ""] == epochs


def test_without_a_rule_nothing_is_said_to_be_complete(made, opened):
    made.execute("train_model", [update(1), evaluation(0), evaluation(1)])
    assert ("recounted_validations_missing", "") not in counted(opened())
