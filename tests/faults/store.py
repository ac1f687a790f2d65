"""Faults of the evidence store and of the SQL that judges what is in it."""

from tests.faults import (
    file_faults,
    reading_faults,
    store_scenes,
    value_faults,
    verdict_faults,
)

SCENES = store_scenes.SCENES
FAULTS = (
    *verdict_faults.FAULTS,
    *value_faults.FAULTS,
    *reading_faults.FAULTS,
    *file_faults.FAULTS,
)
