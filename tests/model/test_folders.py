"""One digest over a folder: nothing that could change in it escapes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.folders import folder_sha256


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    (made / "inner").mkdir(parents=True)
    (made / "a.txt").write_bytes(b"one")
    (made / "inner" / "b.txt").write_bytes(b"two")
    (made / "link").symlink_to("a.txt")
    return made


def swap(folder: Path) -> None:
    one, two = folder / "a.txt", folder / "inner" / "b.txt"
    one.write_bytes(b"two")
    two.write_bytes(b"one")


def link_elsewhere(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("inner/b.txt")


def file_for_link(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").write_bytes(b"one")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.txt").write_bytes(b"onE"),
        lambda folder: (folder / "a.txt").write_bytes(b"one\0"),
        lambda folder: (folder / "a.txt").rename(folder / "A.txt"),
        lambda folder: (folder / "a.txt").unlink(),
        lambda folder: (folder / "empty").mkdir(),
        lambda folder: (folder / "empty.txt").touch(),
        lambda folder: (folder / "a.txt").rename(folder / "inner" / "a.txt"),
        swap,
        link_elsewhere,
        file_for_link,
    ],
)
def test_every_change_of_a_folder_changes_its_digest(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = folder_sha256(folder)
    assert folder_sha256(folder) == before
    change(folder)
    assert folder_sha256(folder) != before


def test_a_file_that_moves_from_one_folder_to_the_next_is_seen(folder: Path) -> None:
    before = folder_sha256(folder, folder / "inner")
    assert before != folder_sha256(folder / "inner", folder)
    assert before != folder_sha256(folder)


def test_where_a_folder_lies_and_when_it_was_written_does_not_count(
    folder: Path, tmp_path: Path
) -> None:
    before = folder_sha256(folder)
    (folder / "a.txt").write_bytes(b"one")
    assert folder_sha256(folder.rename(tmp_path / "elsewhere")) == before
