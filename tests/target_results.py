"""Results of a target out of a rehearsal on this CPU, dressed up where a test needs it.

A dressed result says of itself that it is synthetic, which every way into a store
refuses; the tests go around that on purpose.
"""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jax.profiler import ProfileData

from model.target_result import MANIFEST, MANIFEST_SHA256, write_manifest
from model.workload_trace import RAW, TRACE, summary_of_raw
from tasks.target_challenge import code_sha256
from tests.synthetic_targets import observed_target

NONCE = "cd" * 16
FIXED = ("files", "format", "format_version", MANIFEST_SHA256)


def rehearse(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the whole script on this CPU."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "model.programs.qualify_target", str(folder)),
            *("--expect-platform", "cpu", "--nonce", NONCE),
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / MANIFEST).read_text())


def reseal(folder: Path, **changes: Any) -> None:
    """Writes the manifest again over what lies there now, as a forger would."""
    described = {k: v for k, v in manifest_of(folder).items() if k not in FIXED}
    write_manifest(folder, {**described, **changes})


def dressed(rehearsed: Path, folder: Path, platform: str = "gpu") -> Path:
    """Returns a copy that looks like the result of a target, and says that it is not.

    Args:
        rehearsed: The result of a rehearsal.
        folder: Where the copy goes.
        platform: What it pretends to be.
    """
    shutil.copytree(rehearsed, folder)
    observed = observed_target(platform)
    digest = code_sha256()
    observed |= {"nonce": NONCE, "code_sha256": digest, "code_sha256_demanded": digest}
    write(folder / "probe" / "observed.json", observed)
    trace_devices(folder / "executed", observed["trace_planes"])
    with changing(folder / "executed" / "placement.json") as placement:
        placement["devices_of_state"] = [f"{platform}:0"]
    pretend(folder, platform)
    reseal(
        folder,
        platform=platform,
        accelerator=observed["accelerator"],
        is_rehearsal=False,
        is_synthetic=True,
        is_release_given=True,
    )
    return folder


def trace_devices(folder: Path, planes: Mapping[str, Mapping[str, int]]) -> None:
    """Adds events on lanes of devices to the raw trace in a folder, and counts anew.

    Args:
        folder: Where the raw trace and its summary lie.
        planes: Events of each line of each plane.
    """
    named = 'event_metadata { key: 1 value { id: 1 name: "made up" } }'
    text = ""
    for plane, lines in planes.items():
        if plane.startswith("/device:"):
            shown = "".join(
                f'lines {{ name: "{line}" {"events { metadata_id: 1 } " * events}}}'
                for line, events in lines.items()
            )
            text += f'planes {{ name: "{plane}" {named} {shown} }}'
    raw = gzip.decompress((folder / RAW).read_bytes())
    added = ProfileData.text_proto_to_serialized_xspace(text)
    (folder / RAW).write_bytes(gzip.compress(raw + added))
    write(folder / TRACE, summary_of_raw(folder))


def pretend(folder: Path, platform: str) -> None:
    """Has every process of a result say that it ran on a platform."""
    for path in folder.rglob("program.json"):
        with changing(path) as program:
            if program["runtime"] is not None:
                program["runtime"] |= {"platform": platform, "device_kind": "made up"}


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


class changing:
    """Reads a JSON file, hands it out to be changed, and writes it back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.value = json.loads(path.read_text())

    def __enter__(self) -> Any:
        return self.value

    def __exit__(self, *error: object) -> None:
        write(self.path, self.value)


def change_arrays(path: Path, change: Callable[[str, np.ndarray], np.ndarray]) -> None:
    """Changes the arrays of an NPZ file."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: change(name, archive[name]) for name in archive.files}
    np.savez(path, **arrays)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)
