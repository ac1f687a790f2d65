"""What can go wrong on one host of a slice, and which claims have to say so."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from model.target_result import GANGS, part
from tests.slice_results import observe, observed_host
from tests.target_results import (
    change_arrays,
    changing,
    manifest_of,
    reseal,
    write,
)

TRAINED, RESTARTED = GANGS


def _forget(folder: Path, gang: str, number: int) -> None:
    shutil.rmtree(folder / part(gang, number))


def _copy_first(folder: Path) -> None:
    """All that controller 0 left lies there for controller 1 too."""
    for gang in GANGS:
        shutil.rmtree(folder / part(gang, 1))
        shutil.copytree(folder / part(gang, 0), folder / part(gang, 1))


def _one_machine(folder: Path) -> None:
    for gang in GANGS:
        for name in ("observed.json", "answer.json"):
            _artifact(folder, gang, name, host=observed_host(0)["host"])


def _tie(folder: Path, **changes: Any) -> None:
    path = folder / part(TRAINED, 1) / "artifacts" / "observed.json"
    write(path, {**json.loads(path.read_text()), **changes})


def _change(folder: Path, gang: str, table: str, label: str, **changes: Any) -> None:
    """Changes the last row that controller 1 wrote about a training."""
    with changing(folder / part(gang, 1) / "records" / f"{table}.json") as rows:
        [row for row in rows if row["label"] == label][-1].update(changes)


def _restore(folder: Path, update: int | None) -> None:
    """Controller 1 goes on from another update, or begins anew."""
    with changing(folder / part(RESTARTED, 1) / "end.json") as end:
        kept = [each for each in end["events"] if each["event"] != "restored"]
        told = {"event": "restored", "update": update, "process": 1}
        end["events"] = [*kept, told] if update is not None else kept


def _ended(folder: Path, code: int, gang: str = TRAINED) -> None:
    with changing(folder / part(gang, 1) / "end.json") as end:
        end["return_code"] = code


def _artifact(folder: Path, gang: str, name: str, **changes: Any) -> None:
    with changing(folder / part(gang, 1) / "artifacts" / name) as value:
        value |= changes


def _shift(folder: Path, by: float) -> None:
    logits = folder / part(TRAINED, 1) / "artifacts" / "logits.npz"
    change_arrays(logits, lambda name, array: array + by * name.startswith("fp32"))


def _reseed(folder: Path) -> None:
    with changing(folder / "checkpoint.json") as checkpoint:
        checkpoint["identity"]["order_seed"] += 1


SPOILT: dict[str, tuple[set[str], Callable[[Path], Any]]] = {
    # one controller of two, each time
    "a sign is missing": (
        {"5.1"},
        lambda f: observe(f, RESTARTED, 1, **observed_host(1, "chips_on_bus")),
    ),
    "its workload ran on the CPU": (
        {"5.1"},
        lambda f: _artifact(f, RESTARTED, "trace.json", planes={"/host:CPU": {"x": 9}}),
    ),
    "it left no trace": (
        {"5.1"},
        lambda f: (f / part(RESTARTED, 1) / "artifacts" / "trace.json").unlink(),
    ),
    "it has no device of its own": (
        {"5.1"},
        lambda f: observe(f, TRAINED, 1, local_devices=[]),
    ),
    "it has a device less": (
        {"5.1"},
        lambda f: observe(
            f,
            *(TRAINED, 1),
            local_devices=[4, 5, 6],
            computed=observed_host(1)["computed"][:3],
        ),
    ),
    "its devices are those of the other": (
        {"5.1", "5.4"},
        lambda f: observe(
            f,
            *(RESTARTED, 1),
            local_devices=[0, 1, 2, 3],
            devices=[
                {**each, "process_index": 1 - each["process_index"]}
                for each in observed_host(1)["devices"]
            ],
        ),
    ),
    "its devices are of another generation": (
        {"5.1"},
        lambda f: observe(
            f,
            *(TRAINED, 1),
            devices=[
                {**each, "kind": "TPU v2"} for each in observed_host(1)["devices"]
            ],
        ),
    ),
    "its chips are of another generation": (
        {"5.1"},
        lambda f: observe(
            f,
            *(RESTARTED, 1),
            chips=[
                {**each, "device": "0x0027", "name": "v3"}
                for each in observed_host(1)["chips"]
            ],
        ),
    ),
    "it is a second process of one machine": ({"5.2"}, _one_machine),
    "it trained on the CPU after its probe": (
        {"5.2"},
        lambda f: _artifact(f, TRAINED, "answer.json", platform="cpu"),
    ),
    "another nonce": ({"5.2"}, lambda f: _tie(f, nonce="0" * 32)),
    "other code": ({"5.2"}, lambda f: _tie(f, code_sha256="0" * 64)),
    "other data": (
        {"5.4"},
        lambda f: _change(
            f, TRAINED, "controller_trainings", "split", tokens_sha256="0" * 64
        ),
    ),
    "other masks": (
        {"5.4"},
        lambda f: _change(
            f, TRAINED, "controller_updates", "split", targets_sha256="0" * 64
        ),
    ),
    "another release": (
        {"5.4"},
        lambda f: _artifact(
            f, RESTARTED, "agreed.json", about={"parameters": "0" * 64}
        ),
    ),
    "default precision": (
        {"5.4"},
        lambda f: observe(f, TRAINED, 1, matmul_precision="None"),
    ),
    "state on the CPU": (
        {"5.4"},
        lambda f: _artifact(f, RESTARTED, "placement.json", devices_of_state=["cpu:0"]),
    ),
    "its parameters part from the others'": (
        {"5.3"},
        lambda f: _change(
            f, TRAINED, "controller_updates", "collective", state_sha256="0" * 64
        ),
    ),
    "its repetition parts": (
        {"5.3"},
        lambda f: _change(
            f, RESTARTED, "controller_updates", "repeated split", state_sha256="0" * 64
        ),
    ),
    "its loss is that of TF32": (
        {"5.3"},
        lambda f: _change(f, TRAINED, "controller_updates", "split", loss_sum_nats=0.0),
    ),
    "its logits are those of TF32": ({"5.3"}, lambda f: _shift(f, 6.9e-3)),
    "what it resumed parts": (
        {"5.5"},
        lambda f: _change(
            f, RESTARTED, "controller_updates", "resumed same", state_sha256="0" * 64
        ),
    ),
    "it chose the uncommitted checkpoint": ({"5.5"}, lambda f: _restore(f, 6)),
    "it began anew": ({"5.5"}, lambda f: _restore(f, None)),
    "it ended by itself": ({"5.5"}, lambda f: _ended(f, 0)),
    "it crashed when it was restarted": (
        {"5.5"},
        lambda f: _ended(f, -6, RESTARTED),
    ),
    # what is about all of them
    "trained by another recipe": ({"5.4"}, _reseed),
    "judged by a recipe of its own": (
        {"5.4"},
        lambda f: reseal(f, train={**manifest_of(f)["train"], "order_seed": 99}),
    ),
    "it is not there": (
        {"5.1", "5.2", "5.3", "5.4", "5.5"},
        lambda f: [_forget(f, gang, 1) for gang in GANGS],
    ),
    "the files of one are copied for all": ({"5.1", "5.2", "5.4", "5.5"}, _copy_first),
}
