"""A flow of two tiny stages in place of the real one; the second one misbehaves."""

import os

from tiny_tasks.misbehave import misbehave
from tiny_tasks.scale_number import scale_number

from flows.harness_flow import harness_flow
from flows.run_record import Subject, recorded_run
from model.presets import preset
from tasks.corpus_files import corpus_files


@harness_flow
def qualify(
    preset_name: str, manifest: str | None = None, is_fresh: bool = False
) -> str:
    subject = Subject(
        flow="qualify",
        config=preset(preset_name),
        corpus=corpus_files(manifest),
        runtime={"jax": "0.0"},
        stages=(scale_number, misbehave),
    )
    with recorded_run(subject) as run:
        scaled = scale_number.submit(3, runtime={"jax": "0.0"})
        last = misbehave.submit(
            os.environ["HOW"], runtime={"jax": "0.0"}, wait_for=[scaled]
        )
        return run.follow(scaled, last)
