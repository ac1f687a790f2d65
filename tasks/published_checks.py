"""Checks of a target that others have published, and which of our claims cover each."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedCheck:
    """A check that others have published, and what of it stands in our contract."""

    name: str
    """What it checks."""
    command: str
    """Its command, exactly as it was published."""
    covered_by: str
    """Which of our claims cover it."""


PUBLISHED_CHECKS: Sequence[PublishedCheck] = (
    PublishedCheck(
        name="platform check",
        command=(
            "COURSE_EXPECT_PLATFORM=tpu JAX_PLATFORMS=tpu python "
            "phases/00-welcome/03-move-your-experiment-to-a-tpu/code/main.py"
        ),
        covered_by="5.1 on the target (every sign, not the name), 5.6 without it",
    ),
    PublishedCheck(
        name="multi-process recovery lab",
        command=(
            "COURSE_MULTIPROCESS=1 JAX_PLATFORMS=tpu "
            "COURSE_CHECKPOINT_DIR=/shared/new-recovery-run python "
            "phases/09-distributed/04-resilient-distributed-training/code/main.py"
        ),
        covered_by=(
            "5.2 (every controller answers), 5.3 (the global batch), 5.5 (restart from "
            "a commit); the same over CPU controllers by `harness target rehearse`"
        ),
    ),
)
"""The published checks that this protocol builds on."""
