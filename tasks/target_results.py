"""A result of a target as it comes home: opened without trust, of this very code."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from model.refusal import ReasonCode, Refused
from model.target_result import MANIFEST_SHA256, read_result
from tasks.target_challenge import code_sha256
from tasks.target_platforms import STARTS_AS


@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetResult:
    """A result whose every byte is the one that its manifest names."""

    folder: Path
    """Where it lies."""
    manifest: dict[str, Any]
    """Its manifest."""
    observed: dict[str, Any]
    """What its host answered."""
    runtime: dict[str, str]
    """Numerics fingerprint of the process that trained on the target."""

    @property
    def manifest_sha256(self) -> str:
        """Digest of the manifest, and through it of every file."""
        return str(self.manifest[MANIFEST_SHA256])

    @property
    def host(self) -> str:
        """Name of the machine that it was made on."""
        return str(self.observed["host"])

    def require_target(self) -> None:
        """Refuses a result that is no target's, whatever its rows would say.

        Raises:
            Refused: platform_mismatch for a CPU or for records that were made up.
        """
        names = {self.manifest["platform"], self.runtime["platform"]}
        if self.manifest["is_rehearsal"] or not names <= STARTS_AS.keys():
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                f"this result was made on {self.runtime['platform']!r}, which is no "
                "target; `harness target import DIR --rehearsal` shows what its rows "
                "would say and records nothing",
            )
        if self.manifest["is_synthetic"] or self.observed.get("is_synthetic"):
            raise Refused(
                ReasonCode.PLATFORM_MISMATCH,
                "this result says itself that it was made up; it is no evidence of a "
                "target",
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
    observed = json.loads((folder / "probe" / "observed.json").read_bytes())
    program = json.loads((folder / "trained" / "program.json").read_bytes())
    return TargetResult(
        folder=folder,
        manifest=manifest,
        observed=observed,
        runtime={name: str(value) for name, value in program["runtime"].items()},
    )
