"""What controllers of a slice do beside their trainings, and what each answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.target_result import nonce_of
from tasks.gang import Patience


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What controllers of a slice do beside their trainings, in which order."""

    program: str
    """Module of the controller."""
    asked: Mapping[str, Any]
    """What each is asked besides."""
    steps: Mapping[str, Sequence[str]]
    """Steps of each gang, by its name."""
    nonce: str
    """What the launcher drew for this occasion."""
    patience: Patience
    """How long a gang waits, whatever it compiles."""
    deadline_seconds: float
    """After so many seconds a controller is killed."""

    def seat(self, gang: str, place: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a controller of a gang is asked beside its trainings."""
        nonce = nonce_of(self.nonce, gang, place["process"])
        return {**self.asked, "steps": list(self.steps[gang]), "nonce": nonce}
