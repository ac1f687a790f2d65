"""Faults of controllers, of hosts of a target, and of results that come home."""

from tests.faults import (
    gang_faults,
    gang_scenes,
    host_faults,
    host_scenes,
    program_faults,
    program_scenes,
    rehearsal_faults,
    rehearsal_scenes,
    result_faults,
    result_scenes,
    slice_faults,
    slice_scenes,
)

SCENES = (
    *gang_scenes.SCENES,
    *rehearsal_scenes.SCENES,
    *program_scenes.SCENES,
    *host_scenes.SCENES,
    *result_scenes.SCENES,
    *slice_scenes.SCENES,
)
FAULTS = (
    *gang_faults.FAULTS,
    *rehearsal_faults.FAULTS,
    *program_faults.FAULTS,
    *host_faults.FAULTS,
    *result_faults.FAULTS,
    *slice_faults.FAULTS,
)
