"""The steps to a target: exact commands, in order, for every row the contract asks."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import jsonschema
import pytest
from cyclopts import CycloptsError

from flows import command_line
from tasks.accelerators import ACCELERATORS, known_accelerator
from tasks.published_checks import PUBLISHED_CHECKS
from tasks.target_machines import cluster_steps
from tasks.target_steps import environment_lines, target_steps
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


def test_signs_come_first_and_times_last() -> None:
    steps = target_steps(known_accelerator("nvidia-h100"), "0" * 64)
    claims = [step.claim for step in steps if step.claim]
    assert claims == ["5.1", "5.2", "5.4", "5.3", "5.5"]
    assert steps[-1].expected_table == "target_timings"


@pytest.mark.parametrize("name", ["v5litepod-16", "v6e-16"])
def test_every_host_gets_a_worker_of_a_queue_of_its_own(name) -> None:
    """The command goes through two shells; the host's has no variable of ours."""
    steps = target_steps(known_accelerator(name), "0" * 64)
    commands = [step.command for step in steps if "worker start" in step.command]
    (command,) = [words for words in commands if "--name home-" not in words]
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


# A machine on which every program only says what it was asked, and no variable is set
# but by the plan. Instances are listed in another order than that of their TPU ids.
MACHINE = """
set -eu; unset HOST HOSTS PROJECT ZONE PREFECT_API_URL HARNESS_STORAGE_URL
say() { printf '%s\\0' "$*" >> asked; }
gcloud() {
  case "$*" in
    *list-instances*) printf 'one\\ntwo\\nthree\\nfour\\n';;
    *worker-id*)
      case "$3" in one) echo 2;; two) echo 0;; three) echo 1;; *) echo 3;; esac;;
  esac
  for word in "$@"; do
    case "$word" in --command=*) say "${word#--command=}";; esac
  done
}
ssh() { say "$2"; }
for name in harness prefect kubectl docker tar python scp kill nohup; do
  eval "$name() { :; }"
done
"""


def followed(steps: list[str], folder: Path) -> tuple[str, list[str]]:
    """Returns what a shell says that follows a plan, and what hosts were asked."""
    done = subprocess.run(
        ["bash", "-c", MACHINE + "\n".join(steps)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, (folder / "asked").read_text().split("\0")[:-1]


@pytest.mark.parametrize("name", ACCELERATORS)
def test_a_shell_follows_every_plan_with_nothing_set_before(name, tmp_path) -> None:
    """Every command parses, and every variable was exported by an earlier step."""
    target = known_accelerator(name)
    steps = [step.command for step in target_steps(target, "0" * 64)]
    pods = [step.command for step in cluster_steps(target)]
    assert bool(pods) == (target.platform == "tpu" and target.hosts > 1)
    _, asked = followed(steps + pods, tmp_path)
    assert any("uv venv --clear --python 3.12 ~/target" in each for each in asked)
    for each in asked:
        parsed = subprocess.run(
            ["bash", "-n", "-c", each], capture_output=True, text=True, check=False
        )
        assert parsed.returncode == 0, parsed.stderr


def test_a_variable_that_no_step_exports_stops_the_shell(tmp_path) -> None:
    with pytest.raises(AssertionError, match="NODE: unbound"):
        followed(["ssh x $NODE"], tmp_path)


def test_instances_of_a_slice_are_taken_in_the_order_of_their_chips(tmp_path) -> None:
    steps = [step.command for step in target_steps(known_accelerator("v6e-16"), "0")]
    said, asked = followed(steps, tmp_path)
    assert said.split() == ["two", "three", "one", "four"]
    assert sum("worker start" in each for each in asked) == 4


REHEARSED = "prefect deployment run target/rehearsal --watch"


@pytest.mark.parametrize("name", ACCELERATORS)
def test_a_plan_begins_with_a_run_and_ends_with_nothing_left(name) -> None:
    commands = [step.command for step in target_steps(known_accelerator(name), "0")]
    assert "tpu-compile" in commands[0] and commands[1] == "harness run"
    assert commands.index("harness up") < commands.index(REHEARSED)
    assert commands.index("kill $WORKERS") == commands.index(REHEARSED) + 1
    created = [words for words in commands if re.search(r"\bcreate\b", words)]
    deleted = [words for words in commands if re.search(r"\bdelete\b", words)]
    assert len(created) == len(deleted)
    assert all("--quiet" in words for words in deleted)
    kinds = [words.split(" create ")[0].split()[2:] for words in created]
    gone = [words.split(" delete ")[0].split()[2:] for words in reversed(deleted)]
    assert kinds == gone


@pytest.mark.parametrize("name", ["v5litepod-16", "v5p-16", "v6e-16"])
def test_pods_of_a_slice_are_asked_for_as_the_template_takes_them(name, project):
    """What is asked passes the schema of deploy/kubernetes_tpu.json."""
    target = known_accelerator(name)
    commands = [step.command for step in cluster_steps(target)]
    (command,) = [words for words in commands if "--job-variable" in words]
    asked = json.loads(shlex.split(command)[-1])
    template = json.loads((project / "deploy/kubernetes_tpu.json").read_text())
    jsonschema.validate(asked, template["variables"])
    assert set(asked) <= set(template["variables"]["properties"])
    assert asked["hosts"] * asked["chips_per_host"] == target.devices
    assert asked["env"]["HARNESS_STORAGE_URL"] == "$HARNESS_STORAGE_URL"


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


def test_a_host_whose_devices_do_not_all_train_is_promised_no_acceptance() -> None:
    for name, accelerator in ACCELERATORS.items():
        steps = target_steps(accelerator, "0")
        (row,) = [
            step.expected_row
            for step in steps
            if "devices_untrained" in step.expected_row
        ]
        is_part = accelerator.hosts == 1 and accelerator.devices > 1
        assert ("devices_untrained null" in row) == is_part, name


def test_nothing_but_the_target_may_start() -> None:
    for name, accelerator in ACCELERATORS.items():
        starts = {"tpu": "tpu", "gpu": "cuda"}[accelerator.platform]
        lines = " ".join(environment_lines(accelerator))
        assert f"JAX_PLATFORMS={starts}," in lines, name
        assert "JAX_DEFAULT_MATMUL_PRECISION=highest" in lines
