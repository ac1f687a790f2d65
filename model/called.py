"""What to say of a call that may never come back, written down before it is made.

A user's function can end the program so that nothing of ours runs any more: `os._exit`,
a crash of native code, a call that never lets Python go on. So the sentences for it lie
in a file while it runs; who started the program finds them (`tasks.unfinished_calls`).
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from model.refusal import ReasonCode, Refused

CALLED, STUCK = "called.json", "stuck.txt"
"""The sentences, and where `faulthandler` writes in which line a stuck call was."""
HOW, LINE = "{how}", "{line}"
"""What is not known before."""


class Call(NamedTuple):
    """A call of a function of a user's file, or the loading of the file."""

    file: Path
    """The user's file."""
    function: str = ""
    """The function's name in the system; "" while the file is loaded."""

    @property
    def code(self) -> ReasonCode:
        """Why the file is refused."""
        if self.function:
            return ReasonCode.IMPLEMENTATION_MISBEHAVED
        return ReasonCode.IMPLEMENTATION_UNREADABLE

    @property
    def fields(self) -> list[str]:
        """The function, if it is about one."""
        return [self.function] if self.function else []

    def hangs(self, seconds: float, line: str) -> Refused:
        """Returns what is said when it does not come back.

        Args:
            seconds: How long it was waited for.
            line: Such as " (it was in line 12)", or "".
        """
        name = self.function
        what = f"`{name}` did not return" if name else "was not loaded"
        found = f"{what} within {seconds:g} s{line}"
        advice = "make it end (`harness check --time-limit` allows it more)"
        return self._refused(found, advice)

    def keeps_running(self, seconds: float, threads: str) -> Refused:
        """Returns what is said when the program is done and cannot end.

        Args:
            seconds: How long it was waited for.
            threads: Names of the threads that still run, or "".
        """
        by = f"`{self.function}`" if self.function else "loading it"
        left = f"the thread {threads}" if threads else "something"
        return self._refused(
            f"{by} leaves {left} running, which held up the program for {seconds:g} s",
            "end it before you return, or start threads with daemon=True",
        )

    def ends_the_program(self, is_running: bool) -> Refused:
        """Returns what is said when the program ends in it, or after it, by itself."""
        if self.function:
            where = f"{'while' if is_running else 'after'} `{self.function}` ran"
        else:
            where = f"{'while' if is_running else 'after'} it was loaded"
        return self._refused(
            f"the program ended with {HOW} {where}, before it had a result",
            "return a value or raise an error, and do not end the process",
        )

    def _refused(self, found: str, advice: str) -> Refused:
        between = " " if found.startswith("was not") else ": "
        return Refused(
            self.code, f"{self.file.name}{between}{found}; {advice}.", self.fields
        )


class Notes:
    """The file in which the sentences for the call that runs now lie."""

    def __init__(self, out: Path, seconds: float) -> None:
        """Begins with no call.

        Args:
            out: Result folder of the program.
            seconds: Most seconds of one call.
        """
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        self._file = os.open(out / CALLED, flags)
        self._seconds = seconds

    def write(self, call: Call, is_running: bool) -> None:
        """Notes a call that begins, or that it has come back."""
        text = _sentences(call, self._seconds, is_running)
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))


@cache
def _sentences(call: Call, seconds: float, is_running: bool) -> bytes:
    told = {
        "code": str(call.code),
        "fields": call.fields,
        "folder": str(call.file.parent),
        "is_running": is_running,
        "ended": call.ends_the_program(is_running).message,
        "stuck": call.hangs(seconds, LINE).message,
    }
    return json.dumps(told).encode()
