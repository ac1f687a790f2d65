"""A result of a target as it comes home: opened without trust, of this very code."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from model.refusal import ReasonCode, Refused
from model.target_result import (
    MANIFEST_SHA256,
    observed_files,
    program_files,
    read_result,
)
from tasks.target_challenge import code_sha256
from tasks.target_platforms import STARTS_AS


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
        found = [each["platform"] for each in self.runtimes]
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


def open_result(folder: Path) -> TargetResult:
    """Returns a result that is whole and was made by the code of this launcher.

    Raises:
        Refused: artifact_missing or artifact_altered for a folder that is not as it was
            written, artifact_metadata_mismatch for one that did not come to its end,
            code_mismatch for other code.
    """
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
        return [json.loads(path.read_bytes()) for path in found]

    programs = read(program_files(manifest))
    observed = read(observed_files(manifest))
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
