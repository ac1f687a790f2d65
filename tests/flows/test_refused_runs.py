"""A run that is refused leaves the whole store as it was, whatever was wrong with it.

Names, kinds and bytes of everything in the store are digested before and after, empty
folders too. A stage that fails half-way leaves its run's own record and nothing else.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows import command_line
from flows.command_line import app
from model.checks.bad_corpora import bad_corpora, write_corpus
from model.folders import folder_sha256
from warehouse.store import Store

BAD_CORPORA = {
    f"{bad.measure}/{bad.case_name}": bad for bad in bad_corpora(context_tokens=12)
}
# What the two commands that write a store refuse before anything is started.
BAD_REQUESTS: tuple[tuple[str, ...], ...] = (
    ("run", "--preset", "fixtur"),
    ("run", "--set", "train.update=3"),
    ("run", "--set", "train.updates=many"),
    ("run", "--set", "train.updates"),
    ("run", "--set", "train.updates=0"),
    ("run", "--set", "model.heads=5"),
    ("run", "--set", "target.platform=cpu"),
    ("run", "--set", "target.platform=cuda"),
    ("run", "--set", "target.accelerator=h100"),
    ("run", "--interrupt-at", "301"),
    ("run", "--interrupt-at", "3,x"),
    ("run", "--manifest", "/no/such/manifest.json"),
    ("run", "--manifest", "/"),
    ("certify", "recover"),
    ("certify", "crash", "--set", "train.updates=12"),
    ("certify", "recovery", "--manifest", "/no/such/manifest.json"),
)
# Files that are no manifest at all.
BAD_MANIFESTS = {
    "empty": b"",
    "no_list": b"{}",
    "no_json": b"[",
    "no_text": b"\xff\xfe",
    "no_entries": b"[]",
    "no_objects": b"[1]",
}

Refuse = Callable[..., tuple[int, str]]


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str], monkeypatch) -> Refuse:
    """Runs a command in this process; answers its exit code and what it said."""
    # The command sets it for the processes it would start.
    monkeypatch.setenv("HARNESS_ROOT", "")

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            command_line.main([*map(str, arguments)])
        captured = capsys.readouterr()
        assert captured.out == ""
        return int(ended.value.code or 0), captured.err

    return run


@pytest.fixture
def store(small_store: Path, tmp_path: Path) -> Path:
    """A store with content, a half-written file of a killed process among it."""
    root = tmp_path / "evidence"
    shutil.copytree(small_store, root)
    (root / "temporary").mkdir(exist_ok=True)
    left = root / "temporary" / "999999999.left.part"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    return root


def check(refuse: Refuse, root: Path, *arguments: object) -> str:
    """Refuses a request with a store and without one; returns what was said."""
    before = folder_sha256(root)
    code, said = refuse(*arguments, "--root", root)
    assert code == 2, said
    assert said.startswith("harness: ") and said.count("\n") == 1, said
    assert folder_sha256(root) == before
    absent = root.parent / "absent"
    assert refuse(*arguments, "--root", absent) == (code, said)
    assert not absent.exists()
    return said


@pytest.mark.parametrize("case", BAD_CORPORA)
def test_a_run_on_a_bad_corpus_leaves_the_store_as_it_was(
    refuse: Refuse, store: Path, tmp_path: Path, case: str
) -> None:
    manifest = write_corpus(tmp_path / "corpus", BAD_CORPORA[case].spoil)
    before = folder_sha256(manifest.parent)
    said = check(refuse, store, "run", "--manifest", manifest)
    assert folder_sha256(manifest.parent) == before
    assert all(text in said for text in BAD_CORPORA[case].named)


@pytest.mark.parametrize("case", BAD_MANIFESTS)
def test_a_run_on_no_manifest_leaves_the_store_as_it_was(
    refuse: Refuse, store: Path, tmp_path: Path, case: str
) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_bytes(BAD_MANIFESTS[case])
    check(refuse, store, "run", "--manifest", manifest)


@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=" ".join)
def test_a_request_that_is_refused_leaves_the_store_as_it_was(
    refuse: Refuse, store: Path, request_: tuple[str, ...]
) -> None:
    check(refuse, store, *request_)


@pytest.mark.parametrize(
    "query",
    [
        "drop table raw.perplexities",
        "copy (select 1) to 'evidence/x'",
        "select * from no_such_table",
        "select perplexity_ratio, reason from perplexity_comparisons",
    ],
)
def test_a_query_that_is_refused_leaves_the_store_as_it_was(
    harness, store: Path, query: str
) -> None:
    """So does one of a view that itself refuses: it compares copies in memory."""
    before = folder_sha256(store)
    done = harness("sql", query, "--root", store)
    assert done.returncode == (0 if query.startswith("select perplexity") else 2)
    assert folder_sha256(store) == before


def test_a_refusal_that_opens_the_store_first_would_be_seen(
    refuse: Refuse, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening tidies up what a killed process left, which is a change of bytes."""

    def open_first(name: str) -> None:
        Store(store)
        raise SystemExit(2)

    monkeypatch.setattr("flows.commands_run.preset", open_first)
    before = folder_sha256(store)
    with pytest.raises(SystemExit):
        app(["run", "--root", str(store)])
    assert folder_sha256(store) != before


def without_run(root: Path, run: Path | None = None) -> str:
    """Digest of a store without the record of one run."""
    copy = root.parent / f"copy-of-{root.name}"
    shutil.copytree(root, copy, symlinks=True)
    if run is not None:
        shutil.rmtree(copy / run.relative_to(root))
    digest = folder_sha256(copy)
    shutil.rmtree(copy)
    return digest


@pytest.mark.timeout(300)
def test_a_stage_that_fails_leaves_only_the_record_of_its_run(
    tiny_harness, tmp_path: Path
) -> None:
    """Half-way: rows and an artifact were made, and the next program ended badly."""
    root = tmp_path / "evidence"
    tiny_harness("done").communicate(timeout=120)
    assert list(root.glob("executions/scale_number/*/*.json"))
    for how, words in (
        ("half_way", "the loss is a walnut"),
        ("refuse", "The split is empty."),
    ):
        before, runs = without_run(root), set(root.glob("runs/*"))
        _, err = tiny_harness(how).communicate(timeout=120)
        assert words in err, err
        (failed,) = set(root.glob("runs/*")) - runs
        finished = json.loads((failed / "finished.json").read_text())
        assert finished["status"] == "failed"
        assert words in finished["message"]
        assert without_run(root, failed) == before
        assert without_run(root) != before
