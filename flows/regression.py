"""The qualification again, held against the accepted baseline of its preset and data.

A run that got worse ends Worse, a failure by its type, with a sentence and emits an
event, which an automation turns into a notification. Without a baseline, or where
nothing was recomputed, it ends Not demonstrated: no failure, and no pass either.
"""

from typing import Any

from prefect.events import emit_event
from prefect.states import Completed, Failed

from flows.comparison_page import SHOWN_VIEWS, publish_comparison
from flows.harness_flow import harness_flow
from flows.outcome import NOT_DEMONSTRATED
from flows.parameters import PresetName, Settings
from flows.qualify import qualify
from flows.reading import ACCEPTED, Row, open_run, view_rows
from tasks.reuse import store_root

WORSE = "Worse"
"""State of a run that is done and got worse; Failed is one that could not be done."""
EVENT = "text-harness.regression.worse"
COUNTED = (
    *("differing_values", "worse_rows", "missing_after", "worse_verdicts"),
    *("agreeing_values", "recomputed_stages", "not_recomputed_stages"),
)


@harness_flow
def regression(
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
) -> Any:
    """Qualifies the training system and compares it with its accepted baseline.

    Args:
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether every stage is computed again; a stage that is taken from the
            baseline shows nothing.
        settings: Settings that differ from the preset's; an empty field changes none.
    """
    run_id = qualify(preset_name, manifest, is_fresh, settings)
    names = ("comparison", *SHOWN_VIEWS)
    connection = open_run(store_root(), run_id, names=names, against=ACCEPTED)
    (about,) = view_rows(connection, "comparison")
    problem = publish_comparison(connection, about)
    sentence = about["sentence"] + problem
    if about["result"] == "worse":
        tell_worse(about)
        return Failed(name=WORSE, message=sentence, data=run_id)
    name = None if about["result"] == "agrees" else NOT_DEMONSTRATED
    return Completed(name=name, message=sentence, data=run_id)


def tell_worse(about: Row) -> None:
    """Emits the event of a run that got worse, for automations to act on."""
    emit_event(
        EVENT,
        resource={
            "prefect.resource.id": f"text-harness.run.{about['after_run_id']}",
            "prefect.resource.name": f"run {about['after_run_id']}",
        },
        payload={
            "sentence": about["sentence"],
            "run": about["after_run_id"],
            "baseline": about["before_run_id"],
            "flow": about["flow"],
            "preset": about["preset"],
            "first_finding": about["first_finding"],
            "first_change": about["first_change"],
            "counts": {name: about[name] for name in COUNTED},
        },
    )
