"""A result of a target as it comes home: opened without trust, of this very code."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from model.refusal import ReasonCode, Refused
from model.target_result import (
    MANIFEST,
    MANIFEST_SHA256,
    OBSERVED,
    observed_files,
    program_files,
    read_result,
)
from tasks.target_challenge import code_sha256
from tasks.target_platforms import STARTS_AS

# A manifest that was sealed anew may say anything; its digest proves only its bytes.
FIELDS: Mapping[str, type] = MappingProxyType(
    {
        **dict.fromkeys(("platform", "accelerator", "nonce", "preset"), str),
        **dict.fromkeys(("code_sha256", "stopped_at", "stopped_because"), str),
        **dict.fromkeys(("is_synthetic", "is_rehearsal", "is_release_given"), bool),
        **dict.fromkeys(("model", "train", "steps", "files"), dict),
    }
)
"""What every manifest says, and of which type."""
CONTROLLERS_AT_MOST = 4096
PROGRAM = "program.json"
"""What every program that ended well leaves about its process."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetResult:
    """A result whose every byte is the one that its manifest names."""

    folder: Path
    """Where it lies."""
    manifest: dict[str, Any]
    """Its manifest."""
    observed: list[dict[str, Any]]
    """What each of its controllers answered, once for each process of it."""
    runtimes: list[dict[str, str]]
    """Numerics fingerprint of the process that trained, one a controller."""

    @property
    def manifest_sha256(self) -> str:
        """Digest of the manifest, and through it of every file."""
        return str(self.manifest[MANIFEST_SHA256])

    @property
    def runtime(self) -> dict[str, str]:
        """Numerics fingerprint of the target; that of all its controllers."""
        return self.runtimes[0]

    @property
    def host(self) -> str:
        """Name of the machine that it was made on; of a slice, its first one."""
        return str(self.observed[0]["host"])

    def require_target(self) -> None:
        """Refuses a result that is no target's, whatever its rows would say.

        Raises:
            Refused: platform_mismatch for a CPU, for records that were made up, or for
                controllers that are not alike.
        """
        found = self._platforms()
        others = {self.manifest["platform"], *found} - STARTS_AS.keys()
        if self.manifest["is_rehearsal"] or others:
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                f"this result was made on {', '.join(map(repr, found))}, which is no "
                "target; `harness target import DIR --rehearsal` shows what its rows "
                "would say and records nothing",
            )
        made_up = [each.get("is_synthetic", False) for each in self.observed]
        if self.manifest["is_synthetic"] or any(made_up):
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                "this result says itself that it was made up; it is no evidence of a "
                "target",
            )
        apart = [n for n, each in enumerate(self.runtimes) if each != self.runtime]
        if apart:
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                f"controllers {apart} ran under another runtime than controller 0; "
                "bring the same versions and variables to all hosts",
            )

    def require_preset(self, name: str) -> None:
        """Refuses a result that says that it is of another preset than was asked for.

        Raises:
            Refused: artifact_metadata_mismatch.
        """
        found = self.manifest["preset"]
        if found != name:
            raise Refused(
                ReasonCode.ARTIFACT_METADATA_MISMATCH,
                f"this result says that it is of preset {found!r}; asked for was "
                f"{name!r}: name with `--preset` what the target was asked for",
            )

    def _platforms(self) -> list[str]:
        """Returns the platforms that its programs ran on, every one that says so."""
        names = [name for name in self.manifest["files"] if Path(name).name == PROGRAM]
        told = [_object(self.folder / name) for name in names]
        runtimes = [each["runtime"] for each in told if each.get("runtime")]
        return sorted({str(each["platform"]) for each in (*self.runtimes, *runtimes)})


def open_result(folder: Path) -> TargetResult:
    """Returns a result that is whole and was made by the code of this launcher.

    Raises:
        Refused: artifact_missing or artifact_altered for a folder that is not as it was
            written, artifact_metadata_mismatch for one that did not come to its end or
            says what no result says, code_mismatch for other code.
    """
    _require_fields(folder / MANIFEST)
    manifest = read_result(folder)
    own = code_sha256()
    if manifest["code_sha256"] != own:
        raise Refused(
            ReasonCode.CODE_MISMATCH,
            f"this result was made by code with the digest "
            f"{manifest['code_sha256'][:16]}; this system has {own[:16]}: copy this "
            "folder model to the target and run it there again",
        )

    def read(names: list[str]) -> list[Any]:
        # one that is missing is a controller that did not come to its end
        found = [folder / name for name in names if (folder / name).is_file()]
        return [_object(path) for path in found]

    programs = read(program_files(manifest))
    observed = read(observed_files(manifest))
    _require_answers(programs, observed)
    if not programs or not observed:
        raise Refused(
            ReasonCode.ARTIFACT_METADATA_MISMATCH,
            "no controller of this result came to its end; run it again",
        )
    return TargetResult(
        folder=folder,
        manifest=manifest,
        observed=observed,
        runtimes=[
            {name: str(value) for name, value in each["runtime"].items()}
            for each in programs
        ],
    )


def _require_fields(path: Path) -> None:
    """Refuses a manifest that lacks a field or has one of another type.

    Whether it is there, is JSON and is the one that was sealed is asked afterwards.
    """
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(manifest, dict) or "format" not in manifest:
        return
    for name, kind in FIELDS.items():
        _require_type(MANIFEST, manifest, name, kind)
    for name, file in manifest["files"].items():
        if not isinstance(file, dict):
            raise _mismatch(f"{MANIFEST} says {file!r} of the file {name!r}")
        _require_type(f"{MANIFEST} about {name}", file, "sha256", str)
    if "controllers" in manifest:
        _require_type(MANIFEST, manifest, "controllers", int)
        count = manifest["controllers"]
        if not 1 <= count <= CONTROLLERS_AT_MOST:
            raise _mismatch(
                f"{MANIFEST} says that controllers are {count}; allowed are 1 to "
                f"{CONTROLLERS_AT_MOST}"
            )
        if count > 1:
            _require_type(MANIFEST, manifest, "written", dict)


def _require_answers(
    programs: list[dict[str, Any]], observed: list[dict[str, Any]]
) -> None:
    """Refuses answers without what is asked of each before it is judged."""
    for each in programs:
        _require_type("a program.json", each, "runtime", dict)
        _require_type("a runtime in program.json", each["runtime"], "platform", str)
    for each in observed:
        _require_type(f"an {OBSERVED}", each, "host", str)


def _require_type(where: str, value: Mapping[str, Any], name: str, kind: type) -> None:
    found = value.get(name)
    # True is an int to Python, and no number of controllers
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        told = f"{name} as {found!r:.80}" if name in value else f"no {name}"
        raise _mismatch(f"{where} has {told}; needed is {kind.__name__}")


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _mismatch(f"{path.name} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise _mismatch(f"{path.name} holds no JSON object")
    return value


def _mismatch(what: str) -> Refused:
    return Refused(
        ReasonCode.ARTIFACT_METADATA_MISMATCH,
        f"{what}; let model.programs.qualify_target write the result again",
    )
