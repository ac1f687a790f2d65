"""The folder that a target leaves: files, and a manifest that names each by its digest.

It is made on a machine that has this package, JAX and NumPy and nothing else, carried
home by hand, and opened there without trust. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.refusal import ReasonCode, Refused

FORMAT = "text-harness target result"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
OBSERVED = "observed.json"
"""File with all that a machine answered to the probe."""
MANIFEST_SHA256 = "manifest_sha256"
LARGEST_FILE_BYTES = 16 * 1024 * 1024
"""Most bytes of a file, so that it passes through narrow doors of remote machines."""
STEPS = (
    *("probe", "tokens", "endpoints"),
    *("trained", "repeated", "killed", "resumed", "executed"),
)
"""What was run on the target, in this order; each has a folder of its own."""
GANGS = ("trained", "restarted")
"""What all controllers of a slice ran together, in this order; each controller has a
folder for each."""
SLICE_TRAININGS = ("split", "collective")
"""Programs that a slice trains with: one adds up in the order of documents, whatever
the number of controllers, the other as a target does in earnest."""
TRAINED_UPDATES = 8
CHECKPOINT_EVERY_UPDATES = 2
KILLED_AFTER_UPDATE = 5
RESTORED_UPDATE = KILLED_AFTER_UPDATE - KILLED_AFTER_UPDATE % CHECKPOINT_EVERY_UPDATES
UNCOMMITTED_UPDATE = RESTORED_UPDATE + CHECKPOINT_EVERY_UPDATES
"""A checkpoint that lies there without its commit when the training is restored."""
KILLED_CODE = -9


def steps_of(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the steps that a result needs: of one host, or of all of a slice."""
    return STEPS if controllers_of(manifest) == 1 else GANGS


def controllers_of(manifest: Mapping[str, Any]) -> int:
    """Returns how many controllers a result says that it is of."""
    return int(manifest.get("controllers", 1))


def part(gang: str, controller: int) -> str:
    """Returns the folder in a slice's result of one controller of one gang."""
    return f"controller-{controller}/{gang}"


def nonce_of(nonce: str, gang: str, controller: int) -> str:
    """Returns what one controller of one gang has to answer; no other can know it.

    Args:
        nonce: What the launcher drew for the whole occasion and told no host.
        gang: Name of the gang.
        controller: Number of the controller.
    """
    return _sha256(f"{nonce}/{gang}/{controller}".encode())[:32]


def observed_files(manifest: Mapping[str, Any]) -> list[str]:
    """Returns where a result keeps what each of its controllers answered."""
    count = controllers_of(manifest)
    if count == 1:
        return ["probe/observed.json"]
    return [f"{part(g, n)}/artifacts/{OBSERVED}" for g in GANGS for n in range(count)]


def logits_files(manifest: Mapping[str, Any]) -> list[str]:
    """Returns where a result keeps the logits of each controller's endpoints."""
    count = controllers_of(manifest)
    if count == 1:
        return ["endpoints/logits.npz"]
    return [f"{part(GANGS[0], n)}/artifacts/logits.npz" for n in range(count)]


def program_files(manifest: Mapping[str, Any]) -> list[str]:
    """Returns where a result keeps the runtime of each process that came to its end."""
    count = controllers_of(manifest)
    if count == 1:
        return ["trained/program.json"]
    return [f"{part(GANGS[-1], n)}/program.json" for n in range(count)]


def write_manifest(folder: Path, described: Mapping[str, Any]) -> None:
    """Writes the manifest over every file of a result, last and at once.

    Args:
        folder: The result.
        described: What the manifest says beside the files.

    Raises:
        Refused: artifact_metadata_mismatch for a file that is too large.
    """
    files = {}
    for path in _files(folder):
        size = path.stat().st_size
        name = path.relative_to(folder).as_posix()
        if size > LARGEST_FILE_BYTES:
            raise Refused(
                ReasonCode.ARTIFACT_METADATA_MISMATCH,
                f"{name} has {size} bytes; allowed are {LARGEST_FILE_BYTES}",
            )
        files[name] = {"sha256": _sha256(path.read_bytes()), "bytes": size}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **described,
        "files": files,
    }
    manifest[MANIFEST_SHA256] = _sha256(_canonical(manifest))
    temporary = folder / f".{MANIFEST}.tmp"
    temporary.write_text(json.dumps(manifest, indent=1, sort_keys=True), "utf-8")
    temporary.replace(folder / MANIFEST)


def read_result(folder: Path) -> dict[str, Any]:
    """Returns the manifest of a result of which every byte is the one that it names.

    Raises:
        Refused: artifact_missing, artifact_altered, or artifact_metadata_mismatch for
            another format or a run that did not come to its end.
    """
    manifest = _read_manifest(folder / MANIFEST)
    found = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    named = manifest["files"]
    for name in sorted(named.keys() - found.keys()):
        raise Refused(
            ReasonCode.ARTIFACT_MISSING,
            f"{name} is named by {MANIFEST} and is not there; copy the folder again",
        )
    for name in sorted(found.keys() - named.keys()):
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED,
            f"{name} lies in the result and {MANIFEST} does not name it",
        )
    for name, path in sorted(found.items()):
        if _sha256(path.read_bytes()) != named[name]["sha256"]:
            raise Refused(
                ReasonCode.ARTIFACT_ALTERED,
                f"{name} is not the file that {MANIFEST} names; copy the folder again",
            )
    needed = steps_of(manifest)
    if manifest["stopped_at"] or set(manifest["steps"]) != set(needed):
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"the run on the target ended at {manifest['stopped_at'] or 'no step'!r} "
            f"({manifest['stopped_because']}); all of {', '.join(needed)} are needed",
        )
    return manifest


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        raise Refused(
            ReasonCode.ARTIFACT_MISSING,
            f"there is no {MANIFEST} in {path.parent.name!r} ({error.strerror}); give "
            "the folder that model.programs.qualify_target wrote",
        ) from error
    except (ValueError, RecursionError) as error:
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED, f"{MANIFEST} is no JSON: {error}"
        ) from error
    if not isinstance(manifest, dict) or (
        manifest.get("format"),
        manifest.get("format_version"),
    ) != (FORMAT, FORMAT_VERSION):
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            f"{MANIFEST} is no {FORMAT} of version {FORMAT_VERSION}",
        )
    digest = manifest.pop(MANIFEST_SHA256, "")
    if digest != _sha256(_canonical(manifest)):
        raise Refused(
            ReasonCode.ARTIFACT_ALTERED,
            f"{MANIFEST} was changed after it was written; copy the folder again",
        )
    return {**manifest, MANIFEST_SHA256: digest}


def _files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    ]


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
