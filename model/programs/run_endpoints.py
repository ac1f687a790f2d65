"""Runs the endpoints of a release on this target, before anything is trained on it.

What comes out is kept as arrays; whether it is right is judged elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from model.config import ModelConfig, TrainConfig, from_dict
from model.parameters import initial_parameters, load_parameters, save_parameters
from model.programs import entry
from model.target_endpoints import endpoint_logits, loaded_programs

LOGITS = "logits.npz"


def main(request: dict[str, Any], out: Path) -> None:
    """Executes every endpoint on fixed inputs and keeps its logits.

    Args:
        request: ``model``, ``train`` (settings), ``lowered_for``, ``tokens`` and
            ``parameters`` (paths). Where no parameters lie, no release was given, and
            those that training begins with are put there.
        out: Result folder.
    """
    model = from_dict(ModelConfig, request["model"])
    train = from_dict(TrainConfig, request["train"])
    file = Path(request["parameters"])
    if not file.exists():
        save_parameters(file, initial_parameters(model, train.initialization_seed))
    parameters = load_parameters(file, model)
    with np.load(request["tokens"], allow_pickle=False) as archive:
        heldout = archive["heldout"]
    programs = loaded_programs(model, train, request["lowered_for"])
    logits = endpoint_logits(programs, parameters, heldout, model)
    np.savez(out / LOGITS, allow_pickle=False, **logits)


if __name__ == "__main__":
    entry.run(main)
