"""`harness check` and `harness starter`: somebody else's model passes, a wrong one not.

The stages are really run, once on the example and once on a copy of it with two wrong
losses; how the command shows what they measured is tried on those very rows.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import command_line, implementation_check
from flows.reading import Row, open_run, view_rows
from flows.runtime_fingerprint import runtime_fingerprint
from model.presets import override, preset
from model.system import FUNCTIONS, asked_claims, of_review_tasks
from tasks.corpus_files import corpus_files
from tasks.evaluate_heldout import evaluate_heldout
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model
from tasks.trial import Trial
from warehouse.contract import read_contract

EXAMPLES = Path(__file__).parents[1] / "data" / "implementations"
SETTINGS = (
    "train.updates=12",
    "evaluate.initializations=1",
    "evaluate.future_documents=2",
    "evaluate.reference_documents=4",
    "evaluate.attention_documents=2",
    "evaluate.batch_sizes=1,5",
)
WRONG = '''

right_losses = token_losses


def token_losses(logits, targets):
    """Reads position t against the logits of position t - 1: shifted twice."""
    return right_losses(jnp.roll(logits, 1, axis=1), targets)


def loss_sum_and_count(logits, targets):
    """Counts PAD as a target like any other."""
    likely = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(likely, targets[..., None], axis=-1)
    return -chosen.sum(), jnp.int32(targets.size)
'''


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Claims of review task 1, of the example and of its wrong copy."""
    folder = tmp_path_factory.mktemp("tried")
    shutil.copytree(EXAMPLES, folder / "wrong")
    wrong = folder / "wrong" / "somebody.py"
    wrong.write_text(wrong.read_text("utf-8") + WRONG, "utf-8")
    config = override(preset("fixture"), SETTINGS)
    root = folder / "store"
    corpus, runtime = corpus_files(None), runtime_fingerprint()
    trial = Trial(root, config, corpus, runtime, is_declared=True)
    good = trial.run(
        "good",
        (tokenize_corpus, train_model, evaluate_heldout),
        system={"file": str(EXAMPLES / "somebody.py")},
    )
    given = {name: good.executions[name] for name in ("tokens", "trained")}
    bad = trial.run(
        "wrong", (evaluate_heldout,), system={"file": str(wrong)}, given=given
    )
    assert (good.failure, bad.failure) == ("", "")
    return {
        name: _of_task_1(root, run.run_id)
        for name, run in (("good", good), ("wrong", bad))
    }


def _of_task_1(root: Path, run_id: str) -> list[Row]:
    rows = view_rows(open_run(root, run_id), "checked_claims")
    return [row for row in rows if row["review_task"] == 1]


def _verdicts(rows: list[Row]) -> dict[str, str]:
    return {row["claim"]: row["verdict"] for row in rows}


def test_somebody_elses_model_passes_every_check_of_the_objective(
    tried: dict[str, list[Row]],
) -> None:
    """It shares no code with the built-in one."""
    held = [each.name for each in of_review_tasks([1])]
    verdicts = _verdicts(tried["good"])

    assert {verdicts[c] for c in asked_claims(held) & verdicts.keys()} == {"accept"}
    assert {"1.7", "1.8", "1.9", "1.10", "1.12"} <= verdicts.keys()


def test_a_shifted_target_and_a_counted_pad_are_found(
    tried: dict[str, list[Row]],
) -> None:
    """Each by the claim that measures its function, and by no other."""
    rows = {row["claim"]: row for row in tried["wrong"]}
    revised = {claim for claim, row in rows.items() if row["verdict"] == "revise"}

    assert {"1.9", "1.10"} <= revised
    assert not {"1.7", "1.8"} & revised
    assert rows["1.10"]["status"] == "unmet"


def test_a_check_asks_what_needs_the_declared_corpus_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dropout, its seeds and the order of every epoch are judged by nothing else."""
    asked: dict[str, Any] = {}

    class Stopped(Exception):
        pass

    def trial(*_: object, **named: object) -> None:
        asked.update(named)
        raise Stopped

    monkeypatch.setattr(implementation_check, "Trial", trial)
    with pytest.raises(Stopped):
        implementation_check.checked_claims(None, 1, [1])
    assert asked["is_declared"] is True


def test_a_check_counts_no_sample_that_it_takes_smaller(
    tried: dict[str, list[Row]],
) -> None:
    """The contract has literal counts of samples; the others are all asked."""
    whole = {
        (claim.id, item.measure)
        for claim in read_contract()
        for item in claim.requirements
        if item.scope == "whole"
    }
    assert ("1.9", "targets_compared") in whole
    assert {"dropout_gradient_directional_difference"} <= {
        item.measure
        for claim in read_contract()
        for item in claim.requirements
        if item.scope == "declared"
    }
    verdicts = _verdicts(tried["good"])
    assert verdicts["1.9"] == verdicts["1.10"] == "accept"


class Command:
    """Runs the command in this process on rows that were measured before."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            command_line.main([str(argument) for argument in arguments])
        captured = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Answers exit code, stdout and stderr."""
    yield Command(capsys)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tried: dict[str, list[Row]]) -> Any:
    """Has the command find what was measured, and every function in good form."""

    def use(name: str, failure: str = "") -> None:
        held = [each.name for each in of_review_tasks([1])]
        found = implementation_check.Conformance(
            held=held,
            found=[{"function": each, "found": ""} for each in held],
            left_out=[],
        )
        monkeypatch.setattr(implementation_check, "conformance", lambda *_: found)
        monkeypatch.setattr(
            implementation_check, "checked_claims", lambda *_: (tried[name], failure)
        )

    return use


def test_a_file_that_passes_exits_with_0_and_names_the_next_command(
    command: Command, measured: Any
) -> None:
    """One line a claim: what was measured and what it must be; the verdict is last."""
    measured("good")
    file = EXAMPLES / "somebody.py"
    code, out, _ = command("check", "--implementation", file, "--stage", 1)

    assert code == 0
    assert (
        "1.8   accept            earlier_logits_changed: 0 logits, must be = 0" in out
    )
    assert "Not asked, none of your functions is measured by: 1.0, 1.4" in out
    *_, verdict, following = out.splitlines()
    assert verdict.startswith("Stage 1 passes for ")
    assert following == f"Next: harness run --implementation {file}"


def test_a_file_with_a_wrong_loss_exits_with_1_and_says_where_to_look(
    command: Command, measured: Any
) -> None:
    """The functions that the claim measures, and what it asks."""
    measured("wrong")
    file = EXAMPLES / "somebody.py"
    code, out, _ = command("check", "--implementation", file, "--stage", 1)

    assert code == 1
    assert "1.9   revise" in out
    assert "look at logits, token_losses, evaluate: " in out
    assert "Fails: 1.9, 1.10" in out.splitlines()[-2]


def test_a_stage_that_failed_exits_with_1_and_its_sentence(
    command: Command, measured: Any
) -> None:
    """The claims that were measured before are shown all the same."""
    measured("good", "evaluate_heldout: mine.py: `logits` returns None.")
    file = EXAMPLES / "somebody.py"
    code, out, _ = command("check", "--implementation", file, "--json")
    document = json.loads(out)

    assert code == document["exit_code"] == 1
    assert document["failure"] == "evaluate_heldout: mine.py: `logits` returns None."
    assert document["claims"]


def test_a_claim_that_was_asked_and_shows_nothing_has_not_passed(
    command: Command, measured: Any, tried: dict[str, list[Row]]
) -> None:
    """What ends early leaves rows out, and no row is unmet then."""
    rows = [
        row | ({"verdict": "not demonstrated"} if row["claim"] == "1.9" else {})
        for row in tried["good"]
    ]
    tried["silent"] = rows
    measured("silent")
    file = EXAMPLES / "somebody.py"
    code, out, _ = command(
        "check", "--implementation", file, "--stage", 1, "--time-limit", 5
    )

    assert code == 1
    assert "Fails: 1.9." in out
    assert out.endswith(f"--implementation {file} --stage 1 --time-limit 5\n")


def test_a_check_that_measures_nothing_has_not_passed(
    command: Command, measured: Any, tried: dict[str, list[Row]]
) -> None:
    tried["empty"] = []
    measured("empty")
    code, out, _ = command("check", "--implementation", EXAMPLES / "somebody.py")

    assert code == 1
    assert "Fails: nothing was measured." in out


def test_a_function_that_ends_the_process_is_named(
    command: Command, tmp_path: Path
) -> None:
    """Its program leaves no word; no file of ours is in the sentence."""
    file = tmp_path / "mine.py"
    file.write_text("import os\ndef encode(data):\n    os._exit(0)\n", "utf-8")
    code, out, err = command("check", "--implementation", file, "--stage", 1)

    assert code == 1
    assert "mine.py: the program ended with exit code 0 while `encode` ran" in out
    assert "Fails: encode." in out
    assert "conformance.json" not in out + err


@pytest.mark.parametrize("limit", ["nan", "0", "-3", "inf"])
def test_a_time_limit_is_a_time(command: Command, tmp_path: Path, limit: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def encode(data):\n    return data\n", "utf-8")
    code, _, err = command("check", "--implementation", file, "--time-limit", limit)

    assert code == 2
    assert "Must be" in err
    assert "Traceback" not in err


def test_a_starter_has_the_name_of_a_python_file(
    command: Command, tmp_path: Path
) -> None:
    """A check reads no other."""
    code, _, err = command("starter", tmp_path / "my_model")

    assert code == 2
    assert "let it end with .py" in err
    assert not (tmp_path / "my_model").exists()


def test_a_starter_fails_stage_1_naming_each_function_to_fill_in(
    command: Command, tmp_path: Path
) -> None:
    """It is valid Python with every signature, and no traceback of ours appears."""
    file = tmp_path / "my_model.py"
    assert command("starter", file)[0] == 0
    code, out, err = command("check", "--implementation", file, "--stage", 1)

    assert code == 1, err
    for function in of_review_tasks([1]):
        assert f"`{function.name}` is not filled in; it has to return" in out
    assert "Traceback" not in out + err
    compiled = compile(file.read_text("utf-8"), str(file), "exec")
    names = set(compiled.co_names)
    assert {each.name for each in FUNCTIONS} <= names


def test_a_starter_leaves_a_file_that_is_there(
    command: Command, tmp_path: Path
) -> None:
    """Whatever somebody has written is worth more."""
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n", "utf-8")
    code, _, err = command("starter", file)

    assert code == 2
    assert "exists already" in err
    assert file.read_text("utf-8") == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "stage", "part"),
    [
        (None, "1", "there is no file"),
        ("x = (\n", "1", "cannot be loaded: SyntaxError"),
        ("def encode(data):\n    return data\n", "3", "none of the functions that"),
        ("x = 1\n", "6", "stage"),
    ],
)
def test_what_cannot_be_checked_exits_with_2(
    command: Command, tmp_path: Path, text: str | None, stage: str, part: str
) -> None:
    """A missing file, no Python, nothing to ask, and a stage that does not exist."""
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text, "utf-8")
    code, _, err = command("check", "--implementation", file, "--stage", stage)

    assert code == 2
    assert part in err


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("x = (\n", "is no Python: '(' was never closed in line 1"),
        ("def encode(data):\n    return data\n", "`encode` returns a bytes"),
    ],
)
def test_a_run_is_not_started_on_a_file_that_cannot_be_used(
    command: Command, tmp_path: Path, text: str | None, part: str
) -> None:
    """The sentence of a check, before Prefect or a store is there."""
    file, root = tmp_path / "mine.py", tmp_path / "evidence"
    if text is not None:
        file.write_text(text, "utf-8")
    code, _, err = command("run", "--implementation", file, "--root", root)

    assert code == 2
    assert part in err
    assert "Traceback" not in err
    assert not root.exists()
