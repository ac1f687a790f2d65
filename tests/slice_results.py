"""Results of a slice out of a rehearsal on two CPU hosts, dressed up for tests.

A dressed result says of itself that it is synthetic, which every way into a store
refuses; the tests go around that on purpose.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from model.checks.target_reference import reference_tokens
from model.checks.target_result import read_arrays, read_json
from model.config import ModelConfig, from_dict
from model.target_result import GANGS, TRAINED_UPDATES, part
from tasks.accelerators import known_accelerator
from tests.synthetic_targets import observed_target
from tests.target_results import (
    changing,
    manifest_of,
    pretend,
    reseal,
    trace_devices,
    write,
)

HOSTS = 2
CHIPS = 4
"""Devices of a host of the made-up slice."""
SOLD = known_accelerator("v5p-16").sold()
"""What the made-up slice is held against."""


def places() -> Iterator[tuple[str, int]]:
    """Yields each gang with each of its controllers."""
    for gang in GANGS:
        for number in range(HOSTS):
            yield gang, number


def observed_host(number: int, without: str | None = None) -> dict[str, Any]:
    """Returns what a host of a slice of TPUs might answer, perhaps without a sign."""
    observed = observed_target("tpu", without)
    for device in observed["devices"]:
        device["kind"] = device["kind"].replace("TPU v5 lite", "TPU v5")
    for chip in observed["chips"]:
        if chip["name"] == "v5e" and chip["device"] == "0x0063":
            chip |= {"device": "0x0062", "name": "v5p"}
    own = [CHIPS * number + chip for chip in range(CHIPS)]
    listed = [
        {**device, "id": CHIPS * host + device["id"], "process_index": host}
        for host in range(HOSTS)
        for device in observed["devices"]
    ]
    place = {"process_index": number, "process_count": HOSTS, "local_devices": own}
    place |= {"host": f"made-up-{number}", "accelerator": SOLD["accelerator"]}
    return {**observed, **place, "devices": listed, "matmul_precision": "highest"}


def dressed_slice(rehearsed: Path, folder: Path) -> Path:
    """Returns a copy that looks like the result of a slice, and says that it is not.

    Args:
        rehearsed: The result of a rehearsal on two hosts.
        folder: Where the copy goes.
    """
    shutil.copytree(rehearsed, folder)
    for gang, number in places():
        observed = observed_host(number)
        observe(folder, gang, number, **observed)
        with changing(folder / part(gang, number) / "artifacts" / "answer.json") as own:
            own |= {"host": observed["host"], "platform": "tpu"}
            own["global_device_count"] = len(observed["devices"])
    for number in range(HOSTS):
        own = folder / part(GANGS[-1], number)
        trace_devices(own / "artifacts", observed_host(number)["trace_planes"])
        with changing(own / "artifacts" / "placement.json") as placement:
            placement["devices_of_state"] = [f"tpu:{CHIPS * number}"]
    pretend(folder, "tpu")
    about = read_json(folder / part(GANGS[-1], 0) / "artifacts" / "agreed.json")
    reseal(
        folder,
        platform="tpu",
        accelerator=SOLD["accelerator"],
        is_rehearsal=False,
        is_synthetic=True,
        is_release_given=True,
        made_up_release=about["about"]["parameters"],
    )
    return folder


TIED = ("process_id", "nonce", "code_sha256", "code_sha256_demanded")
"""What ties an answer to its process and its launcher; the rehearsal had it right."""


def observe(folder: Path, gang: str, number: int, **changes: Any) -> None:
    """Changes what one controller of a gang answered, but for what ties it."""
    path = folder / part(gang, number) / "artifacts" / "observed.json"
    tied = {name: value for name, value in read_json(path).items() if name in TIED}
    write(path, {**read_json(path), **changes, **tied})


class StandIn:
    """What controller 0 of the rehearsal held, in the place of the reference.

    A test of the rule changes one controller; the reference itself is compared with
    all of them elsewhere, and takes long.
    """

    def __init__(self, rehearsed: Path) -> None:
        """Reads what controller 0 left."""
        own = rehearsed / part(GANGS[0], 0)
        self.tokens = reference_tokens(
            from_dict(ModelConfig, manifest_of(rehearsed)["model"])
        )
        arrays = read_arrays(own / "artifacts" / "state-split.npz")
        prefix = "parameters/"
        state = SimpleNamespace(
            parameters={
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
        )
        made = read_json(own / "records" / "controller_updates.json")
        self.updates = [
            SimpleNamespace(
                outcome=SimpleNamespace(
                    valid_targets=row["valid_targets"],
                    loss=row["loss_sum_nats"] / row["valid_targets"],
                ),
                state=state,
            )
            for row in made
            if row["label"] == "split" and row["update"] <= TRAINED_UPDATES
        ]
        self._logits = read_arrays(own / "artifacts" / "logits.npz")

    def logits(self, parameters: Path) -> dict[str, Any]:
        """Returns the logits of controller 0."""
        del parameters
        return dict(self._logits)
