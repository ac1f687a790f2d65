"""Faults of a rehearsal on hosts elsewhere, and of a state that lies in parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.faults import NO_REPORT
from tests.faults.declaring import of_file
from tests.faults.gang_faults import (
    ANSWER,
    UPDATE,
    computed_by,
    copy_first,
    mean_of_means,
)

_file = partial(of_file, "target")


def _set(**values: Any) -> Callable[[Any], None]:
    return lambda home: vars(home).update(values)


END = "what hosts say of the end of their controllers"
HOSTS = (
    _file(
        "answers-of-one-host-for-all",
        *("hosts_answers", "5.14", ANSWER),
        "The storage holds the answer of one host under the names of all.",
        "karpathy/llm.c#792",
        copy_first,
    ),
    _file(
        "host-trains-on-alone",
        *("hosts_end", "5.14", END),
        "One host comes to its end as if no other had been lost.",
        "openxla/xla#44429",
        _set(codes=[0, -9]),
    ),
    _file(
        "hosts-crashed-before-the-kill",
        *("hosts_end", "5.14", END),
        "Both hosts crash before anything is done to them, which is told as an end.",
        NO_REPORT,
        _set(codes=[1, 1], failed=0, disturbed=None, updates=0),
    ),
    _file(
        "another-host-crashed-than-was-killed",
        *("hosts_end", "5.14", END),
        "A host that nothing was done to fails first, and takes the other one along.",
        NO_REPORT,
        _set(codes=[1, -9], failed=0),
    ),
    _file(
        "process-left-on-a-host",
        *("hosts_end", "5.14", END),
        "What a controller has started goes on after its host gave up.",
        NO_REPORT,
        _set(left=1),
    ),
    _file(
        "per-host-loss-mean",
        *("hosts_update", "5.14", UPDATE),
        "Each host divides by its own targets, and the means are averaged.",
        "pytorch/torchtitan#1842",
        mean_of_means,
    ),
)


PARTS = "manifest.json of a checkpoint in parts"
IN_PARTS = (
    _file(
        "parts-summed-as-means",
        *("parts_update", "5.15", UPDATE),
        "Each controller's part of a gradient is the mean of its own documents.",
        "pytorch/torchtitan#1842",
        mean_of_means,
    ),
    _file(
        "part-of-the-last-host-left-out",
        *("parts_update", "5.15", UPDATE),
        "What the last controller computed does not reach the sum.",
        "pytorch/pytorch#22584",
        computed_by([0, 1], []),
    ),
    _file(
        "one-digest-for-all-parts",
        *("parts_committed", "5.15", PARTS),
        "One controller digests its parts, and the others are taken at its word.",
        NO_REPORT,
        _set(parts=["a" * 64, "a" * 64]),
    ),
    _file(
        "parts-of-different-steps",
        *("parts_committed", "5.15", "what the controllers of a gang tell"),
        "One controller goes on from a later update than the other.",
        "KempnerInstitute/KempnerForge#49",
        _set(restored=[4, 6]),
    ),
    _file(
        "parts-marked-before-all-are-written",
        *("parts_committed", "5.15", "COMMITTED of a checkpoint in parts"),
        "The mark is written although one controller was lost before.",
        "petuum/adaptdl#70",
        _set(committed=[4, 6]),
    ),
)

FAULTS = (*HOSTS, *IN_PARTS)
