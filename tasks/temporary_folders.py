"""Folders that last as long as a piece of work, also where its process is killed.

A process that is killed leaves its folder behind, with checkpoints in it. The name
holds the id of the process, so that a later one can tell that nobody needs it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.running import may_be_at_work

PREFIX = "harness-"
_ABANDONED_SECONDS = 600


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Makes a private folder and removes it at the end, with what others left.

    Args:
        purpose: What it is for, such as the name of a stage; part of its name.
    """
    remove_abandoned()
    prefix = f"{PREFIX}{purpose}-{os.getpid()}-"
    # A program that is being killed may still write while the folder is removed.
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as made:
        yield Path(made)


def remove_abandoned() -> None:
    """Removes folders of this user, ten minutes old, whose process is gone."""
    oldest = time.time() - _ABANDONED_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*-*"):
        with suppress(OSError):
            found = folder.stat()
            is_ours = found.st_uid == os.getuid() and folder.is_dir()
            if is_ours and found.st_mtime < oldest and not _is_alive(folder.name):
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(name: str) -> bool:
    """Returns whether the process in the name of a folder is there, or unknown."""
    process_id = name.split("-")[-2]
    return not process_id.isdecimal() or may_be_at_work(process_id)
