"""Ends the program when code of a user's file does not come back, and says where.

A thread looks, because an exception raised into the main thread could be caught by the
user's own code. Native code that holds Python's lock keeps that thread from looking; so
`faulthandler`, which needs no lock, is the second net.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from model.called import STUCK, Call, Notes
from model.refusal import Refused

SECONDS_BETWEEN_LOOKS = 0.1
SECOND_NET_SECONDS = 2.0
"""How much later the second net closes: the first one has more to say."""


class Watch:
    """Ends the process when code of a user runs past the time limit."""

    def __init__(
        self, seconds: float, end: Callable[[Refused], None], out: Path | None = None
    ) -> None:
        """Begins to look.

        Args:
            seconds: Most seconds of one call.
            end: Says what happened and ends the process.
            out: Result folder of the program, for what can only be told after its end;
                without one, that is not told.
        """
        self.seconds = seconds
        self._end = end
        self._running: list[tuple[Call, float]] = []
        self._started_by: weakref.WeakKeyDictionary[threading.Thread, Call]
        self._started_by = weakref.WeakKeyDictionary()
        self._last: Call | None = None
        self._main = threading.main_thread().ident or 0
        self._program = _outermost(self._frame())
        self._notes = Notes(out, seconds) if out else None
        self._stuck = (out / STUCK).open("w", encoding="utf-8") if out else None
        threading.Thread(target=self._look, daemon=True).start()

    @contextmanager
    def over(self, call: Call) -> Iterator[None]:
        """Watches a call while the block runs; one may be made within another."""
        before = set(threading.enumerate())
        self._running.append((call, time.monotonic()))
        self._last = call
        self._tell(call)
        try:
            yield
        finally:
            self._running.pop()
            self._tell(call)
            for thread in set(threading.enumerate()) - before:
                self._started_by.setdefault(thread, call)

    def _tell(self, last: Call) -> None:
        """Notes which call runs now, and spreads the second net under it."""
        if self._notes is None or self._stuck is None:
            return
        if not self._running:
            self._notes.write(last, is_running=False)
            faulthandler.cancel_dump_traceback_later()
            return
        call, started = self._running[-1]
        self._notes.write(call, is_running=True)
        left = max(0.0, started + self.seconds - time.monotonic())
        faulthandler.dump_traceback_later(
            left + SECOND_NET_SECONDS, exit=True, file=self._stuck
        )

    def _look(self) -> None:
        ended_at = None
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            frame, now = self._frame(), time.monotonic()
            for call, started in self._running[-1:]:
                if now - started > self.seconds:
                    self._end(call.hangs(self.seconds, _line(call.file, frame)))
            if frame is None or _outermost(frame) is self._program:
                ended_at = None
                continue
            # The program itself has returned: Python waits for what still runs.
            ended_at = ended_at or now
            if now - ended_at > self.seconds:
                self._end(self._left_running())

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self._main)

    def _left_running(self) -> Refused:
        for thread, call in self._started_by.items():
            if thread.is_alive() and not thread.daemon:
                return call.keeps_running(self.seconds, repr(thread.name))
        assert self._last is not None
        return self._last.keeps_running(self.seconds, "")


def _outermost(frame: FrameType | None) -> object:
    """Returns the code that the main thread began with; another one when it ends."""
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code if frame is not None else None


def _line(file: Path, frame: FrameType | None) -> str:
    while frame is not None:
        if file.parent in Path(frame.f_code.co_filename).parents:
            return f" (it was in line {frame.f_lineno})"
        frame = frame.f_back
    return ""
