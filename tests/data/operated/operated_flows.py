"""Flows for the tests of `harness up`: quick ones, and one that waits with a child."""

import os
import subprocess
import sys
from pathlib import Path

from prefect import flow

from tasks.reuse import store_root


@flow
def quick(number: int = 1) -> str:
    """Writes its number and its process into the store's folder.

    Args:
        number: What is written.
    """
    folder = store_root()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "quick.txt").open("a") as file:
        file.write(f"{number} {os.getpid()}\n")
    return str(number)


@flow
def waiting() -> str:
    """Waits for a child that would wait for an hour."""
    folder = store_root()
    folder.mkdir(parents=True, exist_ok=True)
    code = "import time; time.sleep(3600)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, start_new_session=True
    ) as child:
        Path(folder / "waiting.txt").write_text(f"{os.getpid()} {child.pid}")
        child.wait()
    return "waited"
