"""Code of a user that hangs, or ends the process, is told of in one sentence.

Each ends its process, so each has one of its own; what such a process cannot say any
more is told by who started it (`tasks.unfinished_calls`).
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from model.refusal import ReasonCode
from model.watch import Watch
from tasks.program_environment import program_environment
from tasks.unfinished_calls import unfinished_call

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from model.implementation import guarded_functions
from model.programs import entry

def main(request, out):
    end = partial(entry.end_refused, out)
    held = guarded_functions(Path(request["file"]), request["seconds"], end, out)
    held["encode"](b"ab")

entry.run(main)
"""
"""A program that calls one function, without what takes long to load."""
ENDLESS = {
    "a loop": (
        "def encode(data):\n    while True:\n        pass\n",
        "endless.py: `encode` did not return within 0.5 s (it was in line ",
    ),
    "a loop in the file": (
        "x = 1\nwhile x:\n    pass\n",
        "endless.py was not loaded within 0.5 s (it was in line ",
    ),
    "native code that never lets go": (
        "def encode(data):\n    return 7 ** 10 ** 9\n",
        "endless.py: `encode` did not return within 0.5 s (it was in line 2)",
    ),
    "a value without end": (
        "class Endless:\n"
        "    dtype = 'int32'\n"
        "    @property\n"
        "    def shape(self):\n"
        "        while True:\n            pass\n"
        "def encode(data):\n    return Endless()\n",
        "endless.py: `encode` did not return within 0.5 s (it was in line ",
    ),
    "a thread": (
        "import threading, time\nimport numpy as np\n"
        "def encode(data):\n"
        "    threading.Thread(target=time.sleep, args=(99,), name='left').start()\n"
        "    return np.arange(2, dtype='int32')\n",
        "endless.py: `encode` leaves the thread 'left' running, which held up the",
    ),
    "a pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import threading, time\nimport numpy as np\n"
        "pool = ThreadPoolExecutor(1)\n"
        "def encode(data):\n"
        "    pool.submit(time.sleep, 99)\n"
        "    return np.arange(2, dtype='int32')\n",
        "endless.py: `encode` leaves the thread 'ThreadPool",
    ),
    "a process": (
        "import multiprocessing, time\nimport numpy as np\n"
        "def encode(data):\n"
        "    multiprocessing.Process(target=time.sleep, args=(99,)).start()\n"
        "    return np.arange(2, dtype='int32')\n",
        "endless.py: `encode` leaves something running, which held up the program",
    ),
}
ENDS = {
    "in a call": (
        "import os\ndef encode(data):\n    os._exit(0)\n",
        "ends.py: the program ended with exit 0 while `encode` ran, before it had a",
    ),
    "in a call, as if it had failed": (
        "import os\ndef encode(data):\n    os._exit(1)\n",
        "ends.py: the program ended with exit 1 while `encode` ran, before it had a",
    ),
    "while it is loaded": (
        "import os\nos._exit(0)\n",
        "ends.py: the program ended with exit 0 while it was loaded, before it had a",
    ),
    "after a call": (
        "import os, threading, time\nimport numpy as np\n"
        "def end():\n    time.sleep(0.2)\n    os._exit(0)\n"
        "def encode(data):\n"
        "    threading.Thread(target=end).start()\n"
        "    return np.arange(2, dtype='int32')\n",
        "ends.py: the program ended with exit 0 after `encode` ran, before it had a",
    ),
    "by a crash": (
        "import ctypes\ndef encode(data):\n    ctypes.string_at(0)\n",
        "ends.py: the program ended with exit -11 while `encode` ran, before it had a",
    ),
}


@pytest.mark.parametrize("name", list(ENDLESS))
def test_code_that_does_not_come_back_ends_the_program_with_a_sentence(
    tmp_path: Path, name: str
) -> None:
    """The time limit holds for a call, for loading, and for what is left running."""
    text, sentence = ENDLESS[name]
    file = tmp_path / "endless.py"
    file.write_text(text, "utf-8")
    code, message, _ = _run_program(tmp_path, file)

    assert message.startswith(sentence)
    is_loading = "was not loaded" in sentence
    assert code == ReasonCode(
        "implementation_unreadable" if is_loading else "implementation_misbehaved"
    )


@pytest.mark.parametrize("name", list(ENDS))
def test_code_that_ends_the_process_is_named_by_who_started_it(
    tmp_path: Path, name: str
) -> None:
    """Nothing of ours runs any more in the program, so its parent has to say it."""
    text, sentence = ENDS[name]
    file = tmp_path / "ends.py"
    file.write_text(text, "utf-8")
    _, message, _ = _run_program(tmp_path, file)

    assert message.startswith(sentence)


def test_a_failure_of_the_program_itself_is_not_blamed_on_the_file(
    tmp_path: Path,
) -> None:
    """A function that came back is no explanation of a traceback of ours."""
    file = tmp_path / "fine.py"
    file.write_text(
        "import numpy as np\n"
        "def encode(data):\n    return np.arange(2, dtype='int32')\n",
        "utf-8",
    )
    code, message, errors = _run_program(tmp_path, file, "raise ValueError('ours')")

    assert (code, message) == ("", "")
    assert "ValueError: ours" in errors


def _run_program(folder: Path, file: Path, then: str = "") -> tuple[str, str, str]:
    """Returns code and sentence of the refusal, and what went to standard error."""
    out = folder / "out"
    out.mkdir()
    request = {"out": str(out), "file": str(file), "seconds": 0.5}
    (folder / "request.json").write_text(json.dumps(request), "utf-8")
    program = PROGRAM.replace('(b"ab")\n', f'(b"ab")\n    {then}\n')
    errors = folder / "stderr.txt"
    with errors.open("wb") as stderr:
        started = subprocess.Popen(
            [sys.executable, "-c", program, os.fspath(folder / "request.json")],
            env=program_environment(REPOSITORY),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            code = started.wait(60)
        finally:
            # What it started ends with it, as in a run.
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    if (out / "refused.json").is_file():
        refused = json.loads((out / "refused.json").read_text("utf-8"))
        return refused["code"], refused["message"], errors.read_text("utf-8")
    found = unfinished_call(out, code, f"exit {code}")
    told = (found.code, found.message) if found else ("", "")
    return *told, errors.read_text("utf-8")


def test_a_watch_says_nothing_while_calls_come_back() -> None:
    """Only the call that runs now counts, and none does."""
    told: list[object] = []
    Watch(0.01, lambda *what: told.append(what))
    time.sleep(0.1)
    assert told == []
