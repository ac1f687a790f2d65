"""`harness target`: plans and probes, from the command line."""

import json

import pytest

from tasks.accelerators import known_accelerator
from tasks.target_steps import target_steps
from tests.store_maker import StoreMaker
from warehouse.errors import StoreError
from warehouse.nonces import answer_of
from warehouse.store import Store


def test_a_probe_of_this_machine_shows_every_sign_and_demonstrates_nothing(harness):
    done = harness("target", "probe", "--platform", "gpu")
    assert done.returncode == 0, done.stderr
    assert "default_backend" in done.stdout and "lane_events" in done.stdout
    assert "Not demonstrated (target_absent): platform 'gpu' cannot start" in (
        done.stdout
    )
    assert done.stdout.rstrip().endswith(
        "Next: harness target plan --accelerator nvidia-gpu"
    )


def test_a_probe_that_has_to_find_a_target_fails_without_one(harness):
    done = harness("target", "probe", "--require", "accept", "--json")
    assert done.returncode == 1, done.stderr
    probed = json.loads(done.stdout)
    assert probed["code"] == "target_absent" and probed["exit_code"] == 1
    assert len(probed["answer"]["nonce"]) == 32
    assert probed["answer"]["code_sha256"] == probed["answer"]["code_sha256_demanded"]
    assert not any(sign["is_there"] for sign in probed["signs"])


@pytest.mark.parametrize("accelerator", ["v5litepod-16", "v6e-16", "nvidia-h200"])
def test_a_plan_names_its_accelerator(harness, accelerator):
    done = harness("target", "plan", "--accelerator", accelerator)
    assert done.returncode == 0, done.stderr
    assert accelerator in done.stdout
    assert "COURSE_EXPECT_PLATFORM=tpu" in done.stdout
    assert done.stdout.rstrip().endswith("without it: not demonstrated.")


def test_a_plan_as_json_holds_steps_environment_and_published_checks(harness):
    done = harness("target", "plan", "--platform", "gpu", "--json")
    plan = json.loads(done.stdout)
    assert plan["accelerator"]["platform"] == "gpu"
    assert plan["steps"][-1]["expected_table"] == "target_timings"
    assert len(plan["published_checks"]) == 2 and plan["environment"]


def test_the_digest_is_that_of_the_code_a_host_would_run(harness, project):
    from model.folders import source_sha256

    done = harness("target", "digest")
    assert done.stdout.strip() == source_sha256(project / "model")


def test_a_nonce_is_new_each_time_and_the_store_remembers_it(harness, tmp_path):
    root = tmp_path / "evidence"
    drawn = [harness("target", "nonce", "--root", root).stdout.strip() for _ in "12"]
    assert [len(each) for each in drawn] == [32, 32]
    assert sorted(drawn) == sorted(path.name for path in (root / "nonces").iterdir())
    assert all(answer_of(root, each) is None for each in drawn)
    with pytest.raises(StoreError, match="not given out"):
        answer_of(root, "0" * 32)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--accelerator", "v5litepod16"), "Did you mean 'v5litepod-16'?"),
        (("--accelerator", "h100"), "nvidia-h100"),
        (("--platform", "gpu", "--accelerator", "v5p-8"), "Known: nvidia-gpu"),
    ],
    ids=str,
)
def test_an_unknown_accelerator_is_refused_with_the_known_ones(
    harness, arguments, expected
):
    done = harness("target", "plan", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert expected in done.stderr and done.stderr.count("\n") == 1


def test_a_slice_with_more_devices_than_documents_is_refused_before_it_is_had(harness):
    """Every host of it would refuse, after it was created and paid for."""
    done = harness("target", "plan", "--accelerator", "v5litepod-32")
    assert done.returncode == 2 and done.stdout == ""
    assert "with 32 devices, and a batch of preset 'fixture' has 16 documents" in (
        done.stderr
    )
    assert "v5litepod-16" in done.stderr and done.stderr.count("\n") == 1
    queues = ",".join(f"host-{number}" for number in range(8))
    asked = ("--queues", queues, "--accelerator", "v5litepod-32")
    done = harness("target", "run", *asked)
    assert done.returncode == 2 and "with 32 devices" in done.stderr


@pytest.mark.parametrize("controllers", ["1", "99"])
def test_a_gang_of_no_size_is_refused_before_anything_starts(
    harness, tmp_path, controllers
):
    root = tmp_path / "evidence"
    done = harness("target", "rehearse", "--controllers", controllers, "--root", root)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"controllers is {controllers}; allowed is 2 to 16" in done.stderr
    assert not root.exists()


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (("--expect-platform", "cpu"), {}, "a CPU only rehearses one: `harness target"),
        ((), {}, "No Prefect server is configured"),
        ((), {"PREFECT_API_URL": "http://127.0.0.1:9/api"}, "The storage of the hosts"),
        (
            ("--storage", "s3://bucket/gangs"),
            {"PREFECT_API_URL": "http://127.0.0.1:9/api"},
            "The Prefect server at http://127.0.0.1:9/api does not answer",
        ),
    ],
    ids=["cpu", "no server", "no storage", "dead server"],
)
def test_a_target_is_not_run_without_what_its_hosts_share(
    harness, monkeypatch, tmp_path, arguments, environment, expected
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARNESS_ROOT", str(tmp_path / "evidence"))
    done = harness(
        *("target", "run", "--queues", "host-0,host-1", "--accelerator", "v5p-16"),
        *arguments,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert expected in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_review_of_task_5_quotes_the_plan_of_its_run(harness, tmp_path):
    made = StoreMaker(Store(tmp_path / "evidence"))
    steps = target_steps(known_accelerator("nvidia-h200"), "ab" * 32)
    made.execute("qualify_tpu", steps)
    made.run("20260102-030405-abcdef")
    root = ("--root", tmp_path / "evidence")
    done = harness("review", "--task", "5", *root)
    assert done.returncode == 0, done.stderr
    assert "The plan for the target:" in done.stdout
    assert all(step.command in done.stdout for step in steps)
    assert "not demonstrated" in done.stdout
    assert "The plan for the target:" not in harness("review", *root).stdout
