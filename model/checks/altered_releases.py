"""Claim 4.3: what every altered, cut or mixed-up part of a release is refused with.

A copy of the release is spoiled in one place and opened again. What parses an endpoint
is replaced by a refusal of another kind, because bytes that reach it may load in
silence, and may end the process.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from model.checks import rows
from model.refusal import ReasonCode, Refused
from model.release import MANIFEST_NAME, PARAMETERS_NAME, load_verified

REGIONS = 8
"""Places of each endpoint in which one bit is flipped, evenly spaced."""

Files = dict[str, str]
Spoil = Callable[[Files, Path], None]


def check_altered(files: Mapping[str, str], folder: Path) -> list[rows.Row]:
    """Returns one row of ``refusals`` for each way in which a release is spoiled.

    Args:
        files: Paths of the release by artifact name.
        folder: Empty folder, for what is altered.
    """
    found = []
    for number, (measure, case, code, names, spoil) in enumerate(_spoiled(files)):
        place = folder / f"{number:03d}"
        place.mkdir()
        copy = dict(files)
        spoil(copy, place)
        attempt = partial(load_verified, copy, names, parse=_parsed)
        found.append(rows.refusal("4.3", measure, case, code, attempt))
    return found


Case = tuple[str, str, ReasonCode, tuple[str, ...], Spoil]


def _spoiled(files: Mapping[str, str]) -> Iterator[Case]:
    """Yields measure, case, reason, endpoints that are asked for, and what spoils."""
    manifest = json.loads(Path(files[MANIFEST_NAME]).read_text("utf-8"))
    altered = ReasonCode.ARTIFACT_ALTERED
    endpoints = {name: each["file"] for name, each in manifest["endpoints"].items()}
    for name, file in endpoints.items():
        for region in range(REGIONS):
            case, flip = f"{name}/region-{region}", partial(_flip, file, region)
            yield "corrupted_release", case, altered, (name,), flip
        yield "truncated_release", name, altered, (name,), partial(_cut, file)
    cut = partial(_cut, PARAMETERS_NAME)
    yield "truncated_release", "parameters", altered, (), cut
    for policy in [each.partition("-")[2] for each in endpoints if "prefill" in each]:
        asked, code = f"decode-{policy}", ReasonCode.ENDPOINT_MISMATCH
        change = _manifest(partial(_describe_as, asked, f"prefill-{policy}"))
        yield "prefill_for_decode", policy, code, (asked,), change
    code = ReasonCode.PARAMETERS_MISMATCH
    yield "foreign_part", "parameters", code, (), _other_parameters
    for part, code in (
        ("tokenizer", ReasonCode.TOKENIZER_CHANGED),
        ("preprocessing", ReasonCode.PREPROCESSING_CHANGED),
    ):
        yield "foreign_part", part, code, (), _manifest(partial(_another, part))


def _parsed(data: bytearray) -> NoReturn:
    raise Refused(
        ReasonCode.ARTIFACT_METADATA_MISMATCH,
        f"{len(data)} bytes were parsed that nobody had verified",
    )


def _flip(name: str, region: int, files: Files, folder: Path) -> None:
    data = bytearray(Path(files[name]).read_bytes())
    data[region * (len(data) - 1) // (REGIONS - 1)] ^= 1
    _put(name, bytes(data), files, folder)


def _cut(name: str, files: Files, folder: Path) -> None:
    _put(name, Path(files[name]).read_bytes()[:-1], files, folder)


def _other_parameters(files: Files, folder: Path) -> None:
    with np.load(files[PARAMETERS_NAME], allow_pickle=False) as archive:
        arrays: dict[str, Any] = {name: -archive[name] for name in archive.files}
    file = io.BytesIO()
    np.savez(file, **arrays)
    _put(PARAMETERS_NAME, file.getvalue(), files, folder)


def _manifest(change: Callable[[dict[str, Any]], None]) -> Spoil:
    def spoil(files: Files, folder: Path) -> None:
        manifest = json.loads(Path(files[MANIFEST_NAME]).read_text("utf-8"))
        change(manifest)
        _put(MANIFEST_NAME, json.dumps(manifest).encode(), files, folder)

    return spoil


def _describe_as(name: str, other: str, manifest: dict[str, Any]) -> None:
    manifest["endpoints"][name] = manifest["endpoints"][other]


def _another(part: str, manifest: dict[str, Any]) -> None:
    manifest[part] = {**manifest[part], "version": "of somebody else"}


def _put(name: str, data: bytes, files: Files, folder: Path) -> None:
    path = folder / name
    path.write_bytes(data)
    files[name] = str(path)
