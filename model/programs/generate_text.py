"""Completes one prompt with a verified release, for `harness generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model.config import POLICIES
from model.generation import generate
from model.programs import entry
from model.refusal import ReasonCode, Refused
from model.release import load_verified


def main(request: dict[str, Any], out: Path) -> None:
    """Writes ``generation.json``: prompt, ids, text, stop reason, policy.

    Args:
        request: ``files`` (paths by artifact name: release.json, parameters.npz,
            *.jaxexport), ``prompt`` (text), ``policy`` ("fp32", "bf16" or "w8a8"),
            ``maximum_new_tokens`` (null for the release's default).
        out: Result folder.

    Raises:
        Refused: The policy is unknown, the release does not verify, or the prompt is
            longer than the context.
    """
    policy = request["policy"]
    if policy not in POLICIES:
        raise Refused(
            ReasonCode.SETTING_INVALID,
            f"policy {policy!r} is unknown; allowed are {', '.join(POLICIES)}",
        )
    names = (f"prefill-{policy}", f"decode-{policy}")
    release = load_verified(request["files"], names)
    default = release.manifest["decoding"]["maximum_new_tokens"]
    result = generate(
        release.endpoints[names[0]],
        release.endpoints[names[1]],
        # A command line hands undecodable bytes over as surrogate escapes.
        request["prompt"].encode("utf-8", "surrogateescape"),
        context_tokens=release.context_tokens,
        maximum_new_tokens=request.get("maximum_new_tokens") or default,
    )
    text = json.dumps(
        {
            "release_policy": policy,
            "prompt": request["prompt"],
            "prompt_ids": list(result.prompt_ids),
            "token_ids": list(result.token_ids),
            "text": result.text,
            "stop_reason": result.stop_reason,
            "parameters_sha256": release.manifest["parameters"]["tree_sha256"],
        }
    )
    (out / "generation.json").write_text(text, "utf-8")


if __name__ == "__main__":
    entry.run(main)
