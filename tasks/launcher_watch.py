"""Whether the launcher of a gang still lives, as its hosts can see it.

A launcher that is killed tells nobody: its flow run may stay Running for ever, and its
hosts would hold their devices until every deadline has passed. So it leaves a new mark
in the storage now and then, and a host ends its controller when the mark stays as it
is. Marks are compared with each other and with no clock of another machine.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from tasks.storage import Storage, StorageFailed

ALIVE = "launcher-alive"
"""File in the folder of a gang."""
BEAT_SECONDS = 15.0
SILENT_SECONDS = 120.0
"""Eight marks, so that a slow storage or a pause of the launcher ends nothing."""
Clock = Callable[[], float]


class LauncherPulse:
    """The launcher's side: leaves marks."""

    def __init__(self, place: Storage, clock: Clock = time.monotonic) -> None:
        """Leaves no mark yet; `place` is the folder of the gang."""
        self.place = place
        self.clock = clock
        self.beaten: float | None = None

    def beat(self) -> None:
        """Leaves a new mark, unless it did a moment ago."""
        now = self.clock()
        if self.beaten is None or now - self.beaten >= BEAT_SECONDS:
            self.beaten = now
            # What the storage refuses for long enough ends the gang anyway.
            with suppress(StorageFailed):
                self.place.put(ALIVE, secrets.token_bytes(16))


class LauncherWatch:
    """A host's side: looks for new marks."""

    def __init__(self, place: Storage, clock: Clock = time.monotonic) -> None:
        """Counts from now; `place` is the folder of the gang."""
        self.place = place
        self.clock = clock
        self.mark: bytes | None = None
        self.looked = self.changed = clock()

    def silent(self) -> str:
        """Returns why the launcher counts as gone; empty as long as it does not."""
        now = self.clock()
        if now - self.looked >= BEAT_SECONDS:
            self.looked = now
            with suppress(StorageFailed):
                found = self.place.get(ALIVE)
                if found != self.mark:
                    self.mark, self.changed = found, now
        is_silent = now - self.changed > SILENT_SECONDS
        return f"its launcher was silent for {SILENT_SECONDS:g} s" if is_silent else ""
