"""The steps to a target: exact commands, in order, for every row the contract asks."""

import re
import shlex
import subprocess

import pytest
from cyclopts import CycloptsError

from flows import command_line
from tasks.accelerators import ACCELERATORS, known_accelerator
from tasks.published_checks import PUBLISHED_CHECKS
from tasks.target_steps import (
    cluster_lines,
    environment_lines,
    target_steps,
)
from warehouse.contract import read_contract

CLAIMS = ("5.1", "5.2", "5.3", "5.4", "5.5")
# A shell in which the launcher's commands only show what a host would be asked.
STAND_IN = """
NODE=n PROJECT=p ZONE=z HOSTS="a b c d"
PREFECT_API_URL=http://s/api HARNESS_STORAGE_URL=gs://b
gcloud() {
  for word in "$@"; do
    case "$word" in --command=*) printf '%s\\n' "${word#--command=}";; esac
  done
}
"""


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_row_the_contract_asks_of_a_target_is_expected_of_a_step(name) -> None:
    expected = dict.fromkeys(CLAIMS, "")
    for step in target_steps(known_accelerator(name), "0" * 64):
        if step.claim:
            expected[step.claim] += step.expected_row
    required = {
        (claim.id, item.measure)
        for claim in read_contract()
        if claim.id in CLAIMS
        for item in claim.requirements
    }
    assert {claim for claim, _ in required} == set(CLAIMS)
    missing = [pair for pair in required if pair[1] not in expected[pair[0]]]
    assert missing == []


def test_the_configuration_that_is_expected_is_that_of_the_contract() -> None:
    (cases,) = [
        item.cases
        for claim in read_contract()
        for item in claim.requirements
        if item.measure == "target_configuration"
    ]
    steps = target_steps(known_accelerator("nvidia-h200"), "0" * 64)
    (row,) = [step.expected_row for step in steps if step.claim == "5.4"]
    assert [case for case in cases if case not in row] == []


def test_steps_name_the_slice_and_the_release_they_are_about() -> None:
    steps = target_steps(known_accelerator("v5litepod-16"), "ab" * 32)
    text = " ".join(f"{step.command} {step.expected_row}" for step in steps)
    assert "v5litepod-16" in text
    assert "ab" * 32 in text
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("v5litepod-16", "tpus queued-resources create", "instance-groups"),
        ("v5litepod-4", "tpus queued-resources create", "instance-groups"),
        ("v5p-16", "instance-groups managed create", "queued-resources"),
        ("v6e-16", "instance-groups managed create", "queued-resources"),
        ("tpu7x-8", "instance-groups managed create", "queued-resources"),
        ("nvidia-h200", "model.programs.qualify_target", "gcloud"),
    ],
)
def test_a_target_is_had_in_the_way_that_its_generation_allows(name, has, lacks):
    """Google supports queued resources on no generation after v5e."""
    commands = " ".join(
        step.command for step in target_steps(known_accelerator(name), "0" * 64)
    )
    assert has in commands and lacks not in commands
    is_tpu = ACCELERATORS[name].platform == "tpu"
    assert bool(cluster_lines(ACCELERATORS[name])) == is_tpu


def test_signs_come_first_and_times_last() -> None:
    steps = target_steps(known_accelerator("nvidia-h100"), "0" * 64)
    claims = [step.claim for step in steps if step.claim]
    assert claims == ["5.1", "5.2", "5.4", "5.3", "5.5"]
    assert steps[-1].expected_table == "target_timings"


@pytest.mark.parametrize("name", ["v5litepod-16", "v6e-16"])
def test_every_host_gets_a_worker_of_a_queue_of_its_own(name) -> None:
    """The command goes through two shells; the host's has no variable of ours."""
    steps = target_steps(known_accelerator(name), "0" * 64)
    (command,) = [step.command for step in steps if "worker start" in step.command]
    asked = subprocess.run(
        ["bash", "-c", STAND_IN + command], capture_output=True, text=True, check=True
    )
    lines = asked.stdout.splitlines()
    queues = [line.partition("--work-queue ")[2].split()[0] for line in lines]
    assert queues == [f"host-{number}" for number in range(4)]
    for line in lines:
        assert line.startswith(
            "PREFECT_API_URL=http://s/api HARNESS_STORAGE_URL=gs://b"
        )
        assert "--pool text-harness-hosts" in line and "--limit 1" in line
    (run,) = [step.command for step in steps if "target run" in step.command]
    assert f"--queues {','.join(queues)} " in run


def test_what_one_command_makes_is_named_for_each_claim_of_a_slice() -> None:
    steps = target_steps(known_accelerator("v5litepod-16"), "0" * 64)
    claims = {step.claim: step.command for step in steps if step.claim}
    assert claims.pop("5.1").startswith("harness target run")
    assert set(claims.values()) == {"harness review latest --task 5"}


COMMAND = re.compile(r"(?:^|\$\()(harness [^)]*)")


@pytest.mark.parametrize("name", ACCELERATORS)
def test_each_command_of_ours_is_one_that_the_command_line_has(name) -> None:
    """With values for the user's names it parses, every option of it included."""
    found = [
        words
        for step in target_steps(known_accelerator(name), "0" * 64)
        for words in COMMAND.findall(step.command)
    ]
    assert len(found) >= 5
    for words in found:
        arguments = shlex.split(words.replace("$", ""))[1:]
        command, bound, _ = command_line.app.parse_args(
            arguments, print_error=False, exit_on_error=False
        )
        assert bound.arguments or not arguments[2:], words
        assert command.__module__.startswith("flows."), words


def test_a_command_that_is_none_does_not_parse() -> None:
    for words in ("target run", "target run --queues a --kill-controller 1"):
        with pytest.raises(CycloptsError):
            command_line.app.parse_args(
                words.split(), print_error=False, exit_on_error=False
            )


@pytest.mark.parametrize("name", ["v5litepod-4", "nvidia-t4"])
def test_the_script_of_one_host_gets_what_the_launcher_demands(name) -> None:
    steps = target_steps(known_accelerator(name), "0" * 64)
    (command,) = [step.command for step in steps if "qualify_target" in step.command]
    platform = ACCELERATORS[name].platform
    assert f"--expect-platform {platform}" in command
    assert "--nonce $NONCE --code-sha256 $CODE --parameters release/" in command


def test_the_published_checks_are_quoted_as_they_were_published() -> None:
    commands = [check.command for check in PUBLISHED_CHECKS]
    assert commands == [
        "COURSE_EXPECT_PLATFORM=tpu JAX_PLATFORMS=tpu python "
        "phases/00-welcome/03-move-your-experiment-to-a-tpu/code/main.py",
        "COURSE_MULTIPROCESS=1 JAX_PLATFORMS=tpu "
        "COURSE_CHECKPOINT_DIR=/shared/new-recovery-run python "
        "phases/09-distributed/04-resilient-distributed-training/code/main.py",
    ]
    known = {claim.id for claim in read_contract()}
    for check in PUBLISHED_CHECKS:
        named = {word.strip("(,;") for word in check.covered_by.split()} & known
        assert named


def test_nothing_but_the_target_may_start() -> None:
    for name, accelerator in ACCELERATORS.items():
        starts = {"tpu": "tpu", "gpu": "cuda"}[accelerator.platform]
        lines = " ".join(environment_lines(accelerator))
        assert f"JAX_PLATFORMS={starts}," in lines, name
        assert "JAX_DEFAULT_MATMUL_PRECISION=highest" in lines
