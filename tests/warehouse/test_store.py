"""The store: what counts, what heals, and what it says when it cannot be used."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from warehouse.errors import NeverExecuted, NoExecution, RecordError, StoreError
from warehouse.records.claims import Measurement
from warehouse.sealed import seal, unseal
from warehouse.store import Store


@pytest.fixture
def parameters(tmp_path: Path) -> Path:
    path = tmp_path / "parameters.npz"
    path.write_bytes(bytes(range(256)) * 16)
    return path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_committed_execution_is_found_with_its_artifacts(made, rows, parameters):
    execution = made.execute(
        "train_model", [rows["measurement"]], artifacts=[parameters]
    )
    assert made.store.find("key", "train_model") == execution
    stored = made.store.artifact_path(execution.artifact("parameters.npz"))
    assert stored.read_bytes() == parameters.read_bytes()


def test_a_commit_record_of_before_names_no_run_and_still_counts(made, rows):
    execution = made.execute("train_model", [rows["measurement"]])
    (path,) = (made.store.root / "executions").glob("*/*/*.json")
    document = unseal(path.read_bytes())
    del document["run_id"]
    path.write_bytes(seal(document))
    assert made.store.find("key", "train_model") == execution
    assert made.store.commit_of(execution).run_id == ""


def test_an_unknown_key_was_never_executed(made, rows):
    made.execute("train_model", [rows["measurement"]])
    with pytest.raises(NeverExecuted, match="never executed"):
        made.store.find("other", "train_model")


def test_an_unknown_artifact_name_lists_the_known_ones(made, rows, parameters):
    execution = made.execute("train_model", [], artifacts=[parameters])
    with pytest.raises(StoreError, match=r"no artifact 'x'; it made \['parameters"):
        execution.artifact("x")


def test_one_flipped_byte_in_any_file_of_an_execution_makes_it_absent(
    made, rows, parameters
):
    """Artifact, each table and the commit record itself: all are looked at."""
    made.execute("train_model", list(rows.values()), artifacts=[parameters])
    files = [
        path
        for folder in ("artifacts", "records", "executions")
        for path in (made.store.root / folder).rglob("*")
        if path.is_file()
    ]
    assert len(files) == 5
    for path in files:
        good = path.read_bytes()
        flip(path)
        with pytest.raises(NoExecution, match="altered") as caught:
            made.store.find("key", "train_model")
        assert not isinstance(caught.value, NeverExecuted)
        path.unlink()
        if path.suffix != ".json":
            with pytest.raises(NoExecution, match="missing"):
                made.store.find("key", "train_model")
        path.write_bytes(good)
        assert made.store.find("key", "train_model").stage == "train_model"


def test_the_newest_intact_execution_wins(made, rows, parameters):
    first = made.execute("train_model", [rows["measurement"]])
    second = made.execute("train_model", [rows["comparison"]])
    assert made.store.find("key", "train_model") == second
    assert made.store.newest("train_model").nonce == second.nonce
    flip(made.store.evidence_file(second.nonce, "comparisons"))
    assert made.store.find("key", "train_model") == first


def test_storing_an_artifact_again_heals_a_damaged_copy(made, parameters):
    artifact = made.store.put_artifact(parameters)
    path = made.store.artifact_path(artifact)
    flip(path)
    with pytest.raises(StoreError, match=r"parameters\.npz .* was altered"):
        made.store.artifact_path(artifact)
    assert made.store.put_artifact(parameters) == artifact
    assert made.store.artifact_path(artifact).read_bytes() == parameters.read_bytes()


def test_a_commit_record_in_the_place_of_another_does_not_count(made, rows):
    execution = made.execute("train_model", [rows["measurement"]])
    source = made.store.root / "executions/train_model/key" / f"{execution.nonce}.json"
    for place in ("executions/train_model/other", "executions/export_endpoints/key"):
        (made.store.root / place).mkdir(parents=True)
        shutil.copy(source, made.store.root / place / source.name)
    with pytest.raises(NoExecution, match="wrong place"):
        made.store.find("other", "train_model")
    with pytest.raises(NoExecution, match="wrong place"):
        made.store.find("key", "export_endpoints")


def test_a_row_against_its_declaration_leaves_nothing_behind(made, rows):
    bad = Measurement(claim="1.1", measure="m", value_real=float("nan"), unit="1")
    with pytest.raises(RecordError, match="not finite"):
        made.execute("train_model", [rows["comparison"], bad])
    assert not (made.store.root / "records").exists()
    assert made.store.commits() == []


def test_rows_without_a_commit_record_do_not_count(made, rows, opened):
    execution = made.execute("train_model", [rows["measurement"]])
    commit = made.store.root / "executions/train_model/key" / f"{execution.nonce}.json"
    commit.unlink()
    assert opened().execute("select count(*) from stg_measurements").fetchone() == (0,)
    with pytest.raises(NeverExecuted):
        made.store.find("key", "train_model")


def test_a_run_is_started_once_and_finished_only_when_started(made):
    start = made.run("run-1")
    with pytest.raises(StoreError, match="exists already"):
        made.store.start_run(start)
    assert (made.store.root / "runs/run-1/finished.json").is_file()


@pytest.mark.parametrize("name", ["../outside", "a/b", "", "."])
def test_names_cannot_leave_the_store(made, rows, name: str):
    with pytest.raises(StoreError, match="cannot name a file"):
        made.execute("train_model", [rows["measurement"]], key=name)
    with pytest.raises(StoreError, match="cannot name a file"):
        made.execute(name, [rows["measurement"]])
    with pytest.raises(StoreError, match="cannot name a file"):
        made.run(name)


def test_a_root_that_is_a_file_is_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match="file") as caught:
            Store(root)
        assert "\n" not in str(caught.value)


def test_a_reader_needs_a_store_and_makes_none(tmp_path: Path):
    with pytest.raises(StoreError, match=r"no store at .*harness run"):
        Store(tmp_path / "nothing", is_writable=False)
    assert not (tmp_path / "nothing").exists()


def _in_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# What a user without rights meets, whoever runs the tests: the child gives them up.
_AS_NOBODY = """
import os, pathlib, sys
root = pathlib.Path(sys.argv[1])
from warehouse.store import Store
from warehouse.errors import StoreError
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    Store(root, is_writable=sys.argv[2] == "write")
except StoreError as error:
    print(error)
else:
    print("opened")
"""


@pytest.mark.parametrize(
    ("mode", "how", "said"),
    [
        (0o555, "write", "permission is denied"),
        (0o555, "read", "opened"),
        (0o000, "read", "permission is denied"),
    ],
)
def test_rights_of_the_root_decide_and_are_explained(
    tmp_path_factory: pytest.TempPathFactory, mode: int, how: str, said: str
):
    base = Path(os.path.realpath("/tmp")) / f"store-{os.getpid()}-{mode}-{how}"
    root = base / "evidence"
    root.mkdir(parents=True)
    try:
        base.chmod(0o755)
        root.chmod(mode)
        result = _in_child(_AS_NOBODY, root, how)
        assert said in result.stdout, result.stderr
        assert len(result.stdout.splitlines()) == 1
    finally:
        root.chmod(0o755)
        shutil.rmtree(base)


_FILL = """
import pathlib, sys
from warehouse.store import Store
from warehouse.errors import StoreError
store = Store(pathlib.Path(sys.argv[1]))
source = pathlib.Path(sys.argv[2])
kept = []
try:
    for number in range(1000):
        source.write_bytes(number.to_bytes(4, "big") * 20_000)
        kept.append(store.put_artifact(source))
except StoreError as error:
    print(len(kept), error)
assert kept
for artifact in kept:
    store.artifact_path(artifact)
assert list((store.root / "temporary").iterdir()) == []
"""


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(tmp_path: Path):
    """A real full file system where one can be mounted, else a limit on file sizes."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    code = tmp_path / "fill.py"
    code.write_text(_FILL)
    command = (
        f"mount -t tmpfs -o size=1m none {mounted} && exec {sys.executable} {code}"
    )
    result = _unshared(f"{command} {mounted}/evidence {tmp_path}/source")
    if "mount" in result.stderr or "unshare" in result.stderr:
        result = _in_child(
            _FULL_BY_FAILING_WRITES + _FILL, mounted, tmp_path / "source"
        )
    assert result.returncode == 0, result.stderr
    assert "the disk is full" in result.stdout
    assert len(result.stdout.splitlines()) == 1


_FULL_BY_FAILING_WRITES = """
import errno, os
real, calls = os.fsync, [0]
def fsync(descriptor):
    calls[0] += 1
    if calls[0] > 40:
        raise OSError(errno.ENOSPC, "No space left on device")
    return real(descriptor)
os.fsync = fsync
"""


def _unshared(command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(command, 127, "", f"unshare: {error}")


_WRITER = """
import pathlib, sys
from warehouse.records.claims import Measurement
from warehouse.runs import utc_text
from warehouse.store import Store
store = Store(pathlib.Path(sys.argv[1]))
source = pathlib.Path(sys.argv[2]) / sys.argv[3]
for number in range(10):
    source.write_bytes(b"the same bytes for all" + bytes([number]))
    row = Measurement(claim="1.1", measure=sys.argv[3], value_count=number, unit="1")
    store.commit(
        stage="train_model", key="key", components={"stage:name": "train_model"},
        artifacts=[store.put_artifact(source, "shared.bin")], records=[row],
        reason="", started_at=utc_text(number), finished_at=utc_text(number), host="h",
    )
"""


def test_eight_writers_at_once_lose_nothing(made, tmp_path: Path, opened: Any):
    (tmp_path / "sources").mkdir()
    code = textwrap.dedent(_WRITER)
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                code,
                str(made.store.root),
                str(tmp_path / "sources"),
                f"writer_{number}",
            ]
        )
        for number in range(8)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 8
    found = opened().execute(
        "select count(*), count(distinct measure), sum(value_count)"
        " from stg_measurements"
    )
    assert found.fetchone() == (80, 8, 8 * sum(range(10)))
    assert len(made.store.commits()) == 80
    assert all(made.store.commit_problem(each) == "" for each in made.store.commits())
