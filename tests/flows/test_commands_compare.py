"""`accept` and `compare` as a user sees them: exit codes, sentences, JSON."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from model.config import to_dict
from model.presets import fixture
from tests.store_maker import StoreMaker
from warehouse.records.claims import Comparison, Measurement
from warehouse.store import Store

RUNS = ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb", "20260103-000000-cccccc")
STAGE = "train_model"


def write_run(made: StoreMaker, run_id: str, digest: str, rate: str) -> None:
    """Writes a run of one stage that measured a digest and a reported number."""
    comparison = Comparison(
        claim="1.5",
        measure="tokens_before_first_update",
        case_name="train",
        expected=digest,
        measured=digest,
        expected_from="the token table",
    )
    number = Measurement(claim="1.3", measure="m\x1b[31m", value_count=1, unit="1")
    components = {"source:made_up.learning_rate": rate}
    made.execute(STAGE, [comparison, number], key=run_id, components=components)
    configuration = to_dict(fixture())
    made.run(run_id, is_declared=False, system=rate, configuration=configuration)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three runs: the second repeats the first, the third does not."""
    root = tmp_path_factory.mktemp("three") / "evidence"
    made = StoreMaker(Store(root))
    measured = [("abc", "0.003"), ("abc", "0.003"), ("abd", "0.004")]
    for run_id, (digest, rate) in zip(RUNS, measured, strict=True):
        write_run(made, run_id, digest, rate)
    return root


@pytest.fixture
def root(three_runs: Path, tmp_path: Path) -> Path:
    """A copy of the store that a test may change."""
    return Path(shutil.copytree(three_runs, tmp_path / "evidence"))


def test_without_a_baseline_the_next_command_is_accept(
    harness: Callable, three_runs: Path
):
    done = harness("compare", "--root", three_runs)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.strip().splitlines()
    assert first.startswith("Not demonstrated: no accepted baseline")
    assert last == f"Next: harness accept {RUNS[2]} --root {three_runs}"


def test_accept_then_compare_says_what_changed_and_exits_with_one(
    harness: Callable, root: Path
):
    accepted = harness("accept", RUNS[0], "--note", "good", "--root", root)
    assert accepted.returncode == 0, accepted.stderr
    assert RUNS[0] in accepted.stdout
    again = harness("compare", RUNS[1], "--root", root)
    assert again.returncode == 0, again.stderr
    assert f"Run {RUNS[1]} agrees with the baseline {RUNS[0]}" in again.stdout
    worse = harness("compare", "--root", root)
    assert worse.returncode == 1, worse.stderr
    lines = worse.stdout.strip().splitlines()
    assert lines[1].split() == [*("source", "made_up.learning_rate", "0.003", "0.004")]
    assert "1 exact value differs" in lines[-3]
    assert "changed: source made_up.learning_rate 0.003 -> 0.004" in lines[-3]
    assert lines[-2].startswith("If that is what was meant: harness accept")
    assert lines[-1] == f"Next: harness review {RUNS[2]} --root {root}"
    asked = harness(
        "sql",
        "select result, first_change from comparison",
        *("--format", "json", "--root", root),
    )
    assert json.loads(asked.stdout) == [
        {
            "result": "worse",
            "first_change": "source made_up.learning_rate 0.003 -> 0.004",
        }
    ]


def test_a_baseline_of_another_flow_says_what_it_is_not_compared_with(
    harness: Callable, tmp_path: Path
):
    root = tmp_path / "evidence"
    made = StoreMaker(Store(root))
    made.execute(
        STAGE, [Measurement(claim="1.3", measure="m", value_count=1, unit="1")]
    )
    made.run(RUNS[0], flow="certify", configuration=to_dict(fixture()))
    done = harness("accept", "latest", "--root", root)
    assert done.returncode == 0, done.stderr
    assert "for flow certify and the built-in system now" in done.stdout
    assert (
        "`harness run` are not compared with it, only those of certify" in done.stdout
    )


def test_json_is_one_document_with_every_table(harness: Callable, three_runs: Path):
    done = harness("compare", RUNS[0], RUNS[2], "--json", "--root", three_runs)
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert document["exit_code"] == 1
    about = document["comparison"]
    # The first name is the run before, the second the run after.
    assert (about["before_run_id"], about["after_run_id"]) == (RUNS[0], RUNS[2])
    (finding,) = document["findings"]
    assert (finding["before_value"], finding["after_value"]) == ("abc", "abd")
    assert {row["result"] for row in document["rows"]} == {"differs", "shown"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", RUNS[0], RUNS[0]), "would be compared with itself"),
        (("compare", "2025"), "'2025' is unknown"),
        (("compare", "2026"), "begins several runs"),
        (("compare", RUNS[0], "2025"), "'2025' is unknown"),
        (("compare", "2025", RUNS[0]), "'2025' is unknown"),
        (("accept", "2025"), "'2025' is unknown"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    harness: Callable, three_runs: Path, arguments: tuple[str, ...], said: str
):
    done = harness(*arguments, "--root", three_runs)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (three_runs / "baselines").exists()


def test_a_store_that_is_not_there_is_told(harness: Callable, tmp_path: Path):
    for command in (("compare",), ("accept", "latest")):
        done = harness(*command, "--root", tmp_path / "none")
        assert done.returncode == 2
        assert "There is no store" in done.stderr
    assert not (tmp_path / "none").exists()
