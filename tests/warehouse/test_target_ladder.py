"""The rungs of evidence about a target: none of them stands for a higher one."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from tests.store_maker import StoreMaker
from tests.target_rows import CONTRACT, TARGET, WITHOUT, keeping, one_host
from warehouse.records.claims import Comparison, Measurement
from warehouse.records.targets import TargetDevice


def make(
    made: StoreMaker, numbers: Iterable[int], platform: str | None = None
) -> dict[str, list[Any]]:
    """Writes a run whose rows keep the claims of task 5 with these numbers."""
    wanted = set(numbers)
    stages: dict[str, list[Any]] = defaultdict(list)
    for claim in CONTRACT:
        if claim.review_task == 5 and claim.number in wanted:
            for item in claim.requirements:
                # what SQL counts is in no row of its own
                if not item.measure.startswith("recounted_"):
                    stages[item.stage] += keeping(item)
    if platform:
        stages["qualify_target"] += one_host(platform)
    for stage, rows in stages.items():
        made.execute(stage, rows)
    made.run("run-1")
    return stages


def ladder(connection: Any) -> dict[tuple[int, str], str]:
    found = connection.execute("select rung, platform, verdict from target_ladder")
    return {(rung, platform): verdict for rung, platform, verdict in found.fetchall()}


def task_verdict(connection: Any) -> str:
    found = connection.execute("select verdict from task_verdicts where review_task=5")
    ((verdict,),) = found.fetchall()
    return verdict


def test_nothing_below_an_execution_on_a_target_accepts_the_task(made, opened):
    """Exported, compiled and rehearsed are accepted, the target is not demonstrated."""
    make(made, WITHOUT)
    connection = opened(*CONTRACT)
    found = ladder(connection)
    assert found[1, "tpu"] == found[1, "gpu"] == found[2, "tpu"] == "accept"
    assert found[2, "gpu"] == "not demonstrated"
    for platform in ("tpu", "gpu"):
        assert found[4, platform] == found[5, platform] == "not demonstrated"
    assert task_verdict(connection) == "not demonstrated"
    ((steps,),) = connection.execute(
        "select count(*) from verdicts where review_task = 5 and claim_number <= 5 "
        "and next_step like 'needs the target: `harness target plan`%'"
    ).fetchall()
    assert steps == 5


@pytest.mark.parametrize("platform", ["tpu", "gpu"])
def test_a_target_is_accepted_on_its_platform_and_on_no_other(made, opened, platform):
    make(made, [*TARGET, *WITHOUT], platform)
    connection = opened(*CONTRACT)
    found = ladder(connection)
    (other,) = {"tpu", "gpu"} - {platform}
    assert found[4, platform] == found[5, platform] == "accept"
    assert found[4, other] == found[5, other] == "not demonstrated"
    assert task_verdict(connection).startswith("accept")


def test_a_target_without_a_restart_has_the_fourth_rung_only(made, opened):
    make(made, [1, 2, 3, 4, *WITHOUT], "tpu")
    connection = opened(*CONTRACT)
    found = ladder(connection)
    assert found[4, "tpu"] == "accept"
    assert found[5, "tpu"] == "not demonstrated"
    assert task_verdict(connection) == "not demonstrated"


def test_a_target_without_an_answer_of_a_device_has_no_rung(made, opened):
    """Numbers alone, without records of who answered, are of no target."""
    make(made, [*TARGET, *WITHOUT])
    connection = opened(*CONTRACT)
    found = ladder(connection)
    assert found[4, "tpu"] == found[4, "gpu"] == "not demonstrated"
    assert task_verdict(connection) == "not demonstrated"


def test_devices_of_another_platform_are_no_record_of_a_target(made, opened):
    stages = make(made, [*TARGET, *WITHOUT], "gpu")
    rows = [
        TargetDevice(**{**vars(row), "platform": "cpu"})
        if isinstance(row, TargetDevice)
        else row
        for row in stages["qualify_target"]
    ]
    made.execute("qualify_target", rows, key="other")
    made.run("run-2")
    connection = opened(*CONTRACT)
    assert task_verdict(connection) == "revise"
    ((step,),) = connection.execute(
        "select next_step from verdicts where claim = '5.1'"
    ).fetchall()
    assert "recounted_devices" in step


def test_one_program_that_is_not_for_the_platform_is_a_revision(made, opened):
    stages = make(made, WITHOUT, None)
    wrong = [
        row
        for row in stages["qualify_tpu"]
        if getattr(row, "measure", "") == "exported_platforms"
        and row.case_name.startswith("gpu")
    ]
    rows = [row for row in stages["qualify_tpu"] if row is not wrong[0]]
    changed = {**vars(wrong[0]), "measured": "cpu"}
    made.execute("qualify_tpu", [*rows, Comparison(**changed)], key="other")
    made.run("run-2")
    connection = opened(*CONTRACT)
    assert ladder(connection)[1, "gpu"] == "revise"
    assert ladder(connection)[1, "tpu"] == "accept"
    assert task_verdict(connection) == "revise"


def test_without_its_compiler_the_second_rung_says_what_to_install(made, opened):
    missing = Measurement(
        claim="5.8",
        measure="compiled_instructions",
        case_name="tpu",
        unit="instructions",
        reason="compiler_absent",
        detail="pip install 'text-harness[tpu-compile]' && harness run",
    )
    made.execute("qualify_tpu", [missing])
    made.run("run-1")
    connection = opened(*CONTRACT)
    ((verdict, command),) = connection.execute(
        "select verdict, next_command from target_ladder "
        "where rung = 2 and platform = 'tpu'"
    ).fetchall()
    assert verdict == "not demonstrated" and "tpu-compile" in command
    ((step,),) = connection.execute(
        "select next_step from verdicts where claim = '5.8'"
    ).fetchall()
    assert "compiler of the platform is not installed" in step
    assert "pip install" in step


def test_the_ladder_has_a_row_for_each_rung_and_platform_of_an_empty_store(opened):
    found = ladder(opened(*CONTRACT))
    assert set(found) == {(r, p) for r in range(1, 6) for p in ("tpu", "gpu")}
    assert set(found.values()) == {"not demonstrated"}
