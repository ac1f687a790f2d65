"""Tells where the time of a stage goes, while it goes.

Whoever follows the run puts the spans together: two programs may run side by side, and
an instant counts once.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tasks import progress

PROGRAMS = "programs"
"""At least one program of the stage runs: the work itself."""
RECORDING = "recording"
"""What was made is hashed, encoded, written, forced to the disk and committed."""
HASHING = "hashing"
"""The store is asked for an execution, or an input is hashed before it is used."""
KEY = "key"
"""The key is computed: before the store is asked, and after the programs."""
PARTS = (PROGRAMS, RECORDING, HASHING, KEY)
"""Parts of a stage's time; an instant that is in several belongs to the first."""


@contextmanager
def spending(stage: str, part: str) -> Iterator[None]:
    """Tells the time that the block takes as a span of a part of a stage.

    Args:
        stage: Name of the stage.
        part: One of `PARTS`.
    """
    started_ns = time.monotonic_ns()
    try:
        yield
    finally:
        progress.tell(
            stage,
            event=progress.SPENT,
            part=part,
            started_ns=started_ns,
            ended_ns=time.monotonic_ns(),
        )
