"""Files that are whole or absent, and errors of the file system in a sentence."""

import errno
import os
from pathlib import Path

import pytest

from warehouse import durable
from warehouse.durable import DigestMemory, copy_file, hash_file, sweep, write_file
from warehouse.errors import StoreError
from warehouse.store import Store

ABC_SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_written_file_is_there_and_nothing_else_is_left(tmp_path: Path):
    write_file(tmp_path, tmp_path / "deep" / "er" / "file", b"abc")
    assert hash_file(tmp_path / "deep/er/file") == ABC_SHA256
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_copy_reports_the_digest_of_what_it_copied(tmp_path: Path):
    (tmp_path / "source").write_bytes(b"abc")
    assert copy_file(tmp_path, tmp_path / "source", tmp_path / "to") == ABC_SHA256
    assert (tmp_path / "to").read_bytes() == b"abc"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission is denied"),
        (errno.EIO, "reports an error"),
    ],
)
def test_a_failed_fsync_leaves_neither_file_nor_rest_and_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
):
    write_file(tmp_path, tmp_path / "file", b"before")

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=said) as caught:
        write_file(tmp_path, tmp_path / "file", b"after")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_bytes() == b"before"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_every_call_that_can_fail_leaves_the_old_content_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first call of the system fails, then the second, until all go through."""
    failures = 0
    for number in range(1, 20):
        write_file(tmp_path, tmp_path / "file", b"before")
        calls = [0]

        def failing(name: str, calls: list[int] = calls, number: int = number):
            original = getattr(os, name)

            def call(*arguments: object, **options: object) -> object:
                calls[0] += 1
                if calls[0] == number:
                    raise OSError(errno.EIO, "made to fail")
                return original(*arguments, **options)

            return call

        with monkeypatch.context() as patched:
            for name in ("fsync", "open", "replace", "close"):
                patched.setattr(os, name, failing(name))
            try:
                write_file(tmp_path, tmp_path / "file", b"after")
            except StoreError:
                failures += 1
        assert (tmp_path / "file").read_bytes() in (b"before", b"after")
        if calls[0] < number:
            break
    assert (tmp_path / "file").read_bytes() == b"after"
    assert failures >= 3


def test_the_sweep_takes_old_rests_of_dead_processes_only(tmp_path: Path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    dead, alive = f"{2**22 + 1}.aa.part", f"{os.getpid()}.bb.part"
    for name in (dead, alive, "stray"):
        (folder / name).write_bytes(b"rest")
        os.utime(folder / name, (0, 0))
    (folder / f"{2**22 + 1}.young.part").write_bytes(b"rest")
    sweep(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [alive, f"{2**22 + 1}.young.part"]
    )


@pytest.fixture
def remembers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests are remembered however new a file is, as if the test had waited."""
    monkeypatch.setattr(durable, "_SETTLED_NS", -(10**12))


def test_a_file_is_hashed_once_for_all_stores_of_a_process(
    tmp_path: Path, remembers_at_once: None, monkeypatch: pytest.MonkeyPatch
):
    """A run opens its store for every stage; most of a reused run would be hashing."""
    hashed = []
    monkeypatch.setattr(
        durable, "hash_file", lambda path: hashed.append(path) or hash_file(path)
    )
    (tmp_path / "made").write_bytes(b"abc")
    artifact = Store(tmp_path / "evidence").put_artifact(tmp_path / "made")
    for _ in range(3):
        Store(tmp_path / "evidence").artifact_path(artifact)
    assert len(hashed) == 1
    stored = tmp_path / "evidence" / "artifacts" / ABC_SHA256[:2] / ABC_SHA256
    stored.write_bytes(b"abd")
    with pytest.raises(StoreError, match="was altered"):
        Store(tmp_path / "evidence").artifact_path(artifact)


def test_a_file_that_changed_just_now_is_not_remembered(tmp_path: Path):
    """Two changes within one tick of the clock leave the same times behind."""
    memory = DigestMemory()
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert memory.sha256(path) == ABC_SHA256
    assert memory._known == {}


def test_a_remembered_digest_is_forgotten_when_a_byte_changes_at_the_same_time(
    tmp_path: Path, remembers_at_once: None
):
    memory = DigestMemory()
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    assert memory.sha256(path) == ABC_SHA256
    path.write_bytes(b"abd")
    os.utime(path, ns=times)
    assert memory.sha256(path) == hash_file(path) != ABC_SHA256


def test_a_missing_file_has_no_digest(tmp_path: Path):
    assert DigestMemory().sha256(tmp_path / "nothing") is None
    assert DigestMemory().sha256(tmp_path) is None
