"""The array file of a checkpoint: plain NPZ, verified piece by piece when read.

Apart from `model.checkpoint`, because what may be wrong with an array file (size,
digest, names, shapes, types, pickles) has nothing to do with what a training is.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from model.digests import array_sha256
from model.refusal import ReasonCode, Refused, joined

NAMES_TOLD = 3
# Of the length of a header, by the version of the NPY file.
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
Declared = Mapping[str, tuple[tuple[int, ...], str]]


def recorded_arrays(manifest: Mapping[str, Any]) -> Declared:
    """Returns shape and dtype of every array as the manifest itself lists them."""
    return {
        name: (tuple(described["shape"]), described["dtype"])
        for name, described in manifest["arrays"].items()
    }


def write_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Returns an NPZ file whose bytes depend on names and values alone."""
    buffer = io.BytesIO()
    named: dict[str, Any] = {name: arrays[name] for name in sorted(arrays)}
    np.savez(buffer, **named)
    return buffer.getvalue()


def read_arrays(
    path: Path, manifest: Mapping[str, Any], declared: Declared
) -> dict[str, np.ndarray]:
    """Returns the arrays of a checkpoint after verifying file, names and contents.

    Args:
        path: The NPZ file.
        manifest: Manifest with `arrays_file` (bytes, sha256) and `arrays`.
        declared: Shape and dtype of every array there must be.

    Raises:
        Refused: Truncated file, other digest, pickled objects, or an array that is
            missing, extra, misshapen or mistyped: each with its own code. Every array
            that is wrong is named, unless the file itself is another one: bytes that
            nobody committed are not looked into.
    """
    content = _verified_file(path, manifest["arrays_file"])
    try:
        found, arrays, unread = unpack_arrays(content, set(declared))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Refused(
            ReasonCode.CHECKPOINT_DAMAGED,
            f"Array file {path.name!r} is no readable NPZ ({error}); use an earlier"
            " checkpoint.",
            [path.name],
        ) from error
    wrong = [*_wrong_names(found, set(declared)), *unread]
    for name, array in arrays.items():
        wrong += _wrong_array(name, array, declared[name], manifest["arrays"])
    if wrong:
        raise joined(wrong)
    return arrays


def unpack_arrays(
    content: bytes, wanted: set[str]
) -> tuple[set[str], dict[str, np.ndarray], list[Refused]]:
    """Returns what an NPZ file holds: all names, the wanted arrays, and refused ones.

    Args:
        content: The file.
        wanted: Names of the arrays to read; of others only the name is looked at.
    """
    arrays: dict[str, np.ndarray] = {}
    refusals: list[Refused] = []
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        found = set(archive.files)
        for name in sorted(found & wanted):
            try:
                arrays[name] = _array(archive, name)
            except Refused as refused:
                refusals.append(refused)
    return found, arrays, refusals


def _verified_file(path: Path, recorded: Mapping[str, Any]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refused(
            ReasonCode.CHECKPOINT_DAMAGED,
            f"Array file {path.name!r} cannot be read ({error.strerror}); use an"
            " earlier checkpoint.",
            [path.name],
        ) from error
    if len(content) < recorded["bytes"]:
        raise Refused(
            ReasonCode.CHECKPOINT_TRUNCATED,
            f"Array file {path.name!r} has {len(content)} of {recorded['bytes']} bytes;"
            " use an earlier checkpoint.",
            [path.name],
        )
    found = hashlib.sha256(content).hexdigest()
    if found != recorded["sha256"]:
        raise Refused(
            ReasonCode.CHECKPOINT_CHECKSUM,
            f"Array file {path.name!r} has digest {found} where the manifest has"
            f" {recorded['sha256']}; use an earlier checkpoint.",
            [path.name],
        )
    return content


def _wrong_names(found: set[str], wanted: set[str]) -> Iterator[Refused]:
    for code, kind, names in (
        (ReasonCode.CHECKPOINT_ARRAY_MISSING, "lacks", wanted - found),
        (ReasonCode.CHECKPOINT_ARRAY_EXTRA, "has the unknown", found - wanted),
    ):
        if names:
            yield Refused(
                code,
                f"Checkpoint {kind} array {_listed(sorted(names))}; needed are exactly"
                f" {len(wanted)} arrays.",
                (f"arrays.{name}" for name in sorted(names)),
            )


def _listed(names: list[str]) -> str:
    """Returns the first names for a sentence; its fields hold every one."""
    told = ", ".join(map(repr, names[:NAMES_TOLD]))
    more = len(names) - NAMES_TOLD
    return f"{told} and {more} more" if more > 0 else told


def _array(archive: Any, name: str) -> np.ndarray:
    """One array of the file; the header is looked at before any content."""
    with archive.zip.open(f"{name}.npy") as file:
        shape, is_fortran, dtype = _described(name, _header(file))
        if dtype.hasobject:
            raise Refused(
                ReasonCode.CHECKPOINT_PICKLED,
                f"Array {name!r} of the checkpoint holds pickled objects, which could"
                " run code; only plain numbers are read.",
                [f"arrays.{name}"],
            )
        # Not archive[name]: it would read the header once more.
        values = np.frombuffer(file.read(), dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _header(file: Any) -> bytes:
    """Returns the beginning of an NPY file, up to its values."""
    start: bytes = file.read(np.lib.format.MAGIC_LEN)
    length: bytes = file.read(_LENGTH_BYTES.get((*start[-2:],), 0))
    rest: bytes = file.read(int.from_bytes(length, "little"))
    return start + length + rest


# Reading a header costs more than reading its values, and most are alike.
@lru_cache(maxsize=256)
def _described(name: str, header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Returns shape, Fortran order and type that the header of an array states."""
    file = io.BytesIO(header)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"array {name!r} has NPY version {version}")
    return read(file)


def _wrong_array(
    name: str,
    array: np.ndarray,
    declared: tuple[tuple[int, ...], str],
    recorded: Mapping[str, Any],
) -> Iterator[Refused]:
    """Yields what is wrong with one array: its shape, its type, or else its digest."""
    digest = recorded.get(name, {}).get("sha256")
    code = ReasonCode
    found: tuple[tuple[ReasonCode, str, Any, Any], ...] = (
        (code.CHECKPOINT_ARRAY_SHAPE, "shape", array.shape, declared[0]),
        (code.CHECKPOINT_ARRAY_DTYPE, "dtype", array.dtype.name, declared[1]),
    )
    # Another shape or type has another digest too, which says nothing more.
    if (array.shape, array.dtype.name) == declared:
        found = ((code.CHECKPOINT_CHECKSUM, "sha256", array_sha256(array), digest),)
    for reason, what, has, wanted in found:
        if has != wanted:
            yield Refused(
                reason,
                f"Array {name!r} of the checkpoint has {what} {has!r} where"
                f" {wanted!r} is needed; use a checkpoint of this training.",
                [f"arrays.{name}.{what}"],
            )
