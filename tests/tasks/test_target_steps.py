"""The steps to a target: exact commands, in order, for every row the contract asks."""

import json
import subprocess

import pytest

from tasks.accelerators import ACCELERATORS, known_accelerator
from tasks.target_steps import (
    PUBLISHED_CHECKS,
    cluster_lines,
    environment_lines,
    target_steps,
)
from warehouse.contract import read_contract

CLAIMS = ("5.1", "5.2", "5.3", "5.4", "5.5")
# A shell in which the launcher's commands only show what a host would be asked.
STAND_IN = """
NONCE=abc CODE=def NODE=n PROJECT=p ZONE=z HOSTS=h HOST=h
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
def test_the_probe_of_every_host_gets_what_the_launcher_demands(name) -> None:
    """The command goes through two shells; the host's has no variable of ours."""
    steps = target_steps(known_accelerator(name), "0" * 64)
    (command,) = [step.command for step in steps if "probe_target" in step.command]
    asked = subprocess.run(
        ["bash", "-c", STAND_IN + command], capture_output=True, text=True, check=True
    )
    written = asked.stdout.partition(" > probe.json")[0]
    done = subprocess.run(
        ["bash", "-c", written], capture_output=True, text=True, check=True
    )
    request = json.loads(done.stdout)
    assert request["nonce"] == "abc" and request["code_sha256"] == "def"
    assert request["target"] == {"platform": "tpu", "accelerator": name}
    assert request["is_gang"]


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
