"""The long proofs by the name that the command line knows them by.

Their source is part of the system that a verdict is about, so the whole run names them
too: a proof made by other code than today's proves nothing about today.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model.config import RunConfig
from tasks.certify_crash import certify_crash
from tasks.certify_recovery import certify_recovery
from tasks.drill_recovery import drill_recovery
from tasks.qualify_target import qualify_target
from tasks.rehearse_remote import rehearse_remote
from tasks.rehearse_target import rehearse_target
from tasks.stage import StageTask
from tasks.train_on_target import train_on_target


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A stage that proves something about tokens and an uninterrupted training."""

    stage: StageTask
    part: str
    """The part of the configuration that it reads."""

    def settings(self, config: RunConfig) -> Any:
        """Returns what it takes of a configuration beside model and training."""
        return getattr(config, self.part)


DRILL_OF_RECOVERY = Proof(stage=drill_recovery, part="drill")

PROOFS: Mapping[str, tuple[Proof, ...]] = {
    "recovery": (
        Proof(stage=certify_recovery, part="certify"),
        # The comparison of a certificate is worth what the drill says it finds.
        DRILL_OF_RECOVERY,
    ),
    "crash": (Proof(stage=certify_crash, part="certify"),),
}
"""What `harness certify` runs: its own stage first, then what that rests on."""


def proof_stages() -> tuple[StageTask, ...]:
    """Returns the stages of all proofs, rehearsals and target's result, each once."""
    proofs = [proof.stage for group in PROOFS.values() for proof in group]
    others = (rehearse_target, rehearse_remote, train_on_target, qualify_target)
    return tuple(dict.fromkeys([*proofs, *others]))
