"""What a program was doing for a user's file when it ended without a word.

Such an end leaves nobody in the program to say it: the sentences were written before
the call (`model.called`), and what only its end shows is put in here.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

CALLED, STUCK = "called.json", "stuck.txt"
FRAME = re.compile(r'File "(.+)", line (\d+)')


class UnfinishedCall(NamedTuple):
    """A program's refusal, as it would have written it."""

    code: str
    """Why the file is refused."""
    message: str
    """The sentence."""
    fields: tuple[str, ...]
    """The function; nothing while the file was loaded."""

    @property
    def function(self) -> str:
        """Its name, or what else was called."""
        return self.fields[0] if self.fields else "import"


def unfinished_call(out: Path, return_code: int, how: str) -> UnfinishedCall | None:
    """Returns the call that explains how a program ended; None if none does.

    Args:
        out: Result folder of the program.
        return_code: What it ended with; it said neither that it was done nor why not.
        how: The same in words, such as "SIGSEGV".
    """
    try:
        noted = json.loads((out / CALLED).read_bytes())
    except (FileNotFoundError, ValueError):
        return None  # No code of a user was called.
    stuck = _read(out / STUCK)
    # After a call has come back, a failure is more likely one of the program.
    if not stuck and not noted["is_running"] and return_code != 0:
        return None
    message = noted["ended"].replace("{how}", how)
    if stuck:
        message = noted["stuck"].replace("{line}", _line(stuck, Path(noted["folder"])))
    return UnfinishedCall(noted["code"], message, tuple(noted["fields"]))


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _line(stuck: str, folder: Path) -> str:
    """Returns the innermost line of the user's own folder, of the main thread."""
    for thread in reversed(stuck.split("\n\n")):
        for name, line in FRAME.findall(thread):
            if folder in Path(name).parents:
                return f" (it was in line {line})"
    return ""
