"""What can go wrong when a stage runs its program.

Each error's text is the one sentence a user sees; the command line adds nothing.
"""

from collections.abc import Iterable
from typing import Any


class StageError(Exception):
    """A stage could not finish."""


class ProgramRefused(StageError):
    """A program refused its input; `code` is a reason from the closed list."""

    def __init__(
        self, code: str, message: str, run: Any = None, fields: Iterable[str] = ()
    ) -> None:
        """Keeps reason code, process and the fields that are wrong beside the text."""
        super().__init__(message)
        self.code = code
        self.run = run
        self.fields = tuple(fields)


class ProgramFailed(StageError):
    """A program ended in a way it should not have."""


class ProgramTimedOut(StageError):
    """A program ran past its deadline and was killed."""


class ProgramsStopped(StageError):
    """The run is being interrupted; no further program is started."""


class FolderUnusable(StageError):
    """A folder that programs need cannot be made or written."""


class StoreUnnamed(StageError):
    """A worker runs a flow and nothing says where its evidence belongs."""


class RuntimeChanged(StageError):
    """A program ran on another numerics fingerprint than the one its key holds."""


class InputChanged(StageError):
    """Source or corpus was changed while a stage read it; nothing of it was kept."""


class ResultsMalformed(StageError):
    """A program left results that its stage did not declare or cannot read."""
