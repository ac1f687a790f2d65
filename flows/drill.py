"""The drill: planted faults that the checks of the evidence have to find.

The same stage that `harness certify recovery` runs, without the long proof beside it,
so that it can be scheduled.
"""

from flows.certify import prove
from flows.harness_flow import harness_flow
from flows.parameters import PresetName, Settings, overrides_of
from flows.proofs import DRILLS
from model.presets import drillable


@harness_flow
def drill(
    preset_name: PresetName = "fixture",
    manifest: str | None = None,
    is_fresh: bool = False,
    settings: Settings | None = None,
) -> str:
    """Plants every fault and returns the id of the run.

    Args:
        preset_name: The preset the configuration starts from.
        manifest: Path of a corpus manifest on the worker; empty for the fixture corpus.
        is_fresh: Whether the faults are planted again; what they are planted into is
            kept.
        settings: Settings that differ from the preset's; an empty field changes none.
    """
    config = drillable(preset_name, overrides_of(settings))
    return prove("drill", DRILLS, config, manifest, is_fresh=is_fresh)
