"""Opens a release where its source cannot be imported, and runs it there.

The stage starts this program from a folder that holds only what it imports. An
editable install of the project would still answer for the missing modules, so the
program first forgets every other place where a ``model`` package could come from.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from model.checks import endpoints as endpoint_checks
from model.checks import generation as generation_checks
from model.checks import rows, sampling
from model.checks.altered_releases import check_altered
from model.checks.recomputed import check_recomputed
from model.config import POLICIES, ExportConfig, from_dict
from model.generation import NEVER_EMITTED
from model.programs import entry
from model.release import Release, load_verified
from model.tokenizer import decode

SPLIT = "heldout"


def main(request: dict[str, Any], out: Path) -> None:
    """Measures claims 4.1 to 4.5 on the reloaded release.

    Args:
        request: ``export`` (settings), ``files`` (paths by artifact name),
            ``source_outputs``, ``expected_settings``, ``tokens`` (paths),
            ``exporting_process_id``, ``trained_parameters_sha256``.
        out: Result folder.
    """
    forget_other_roots(Path(__file__).resolve().parents[2])
    settings = from_dict(ExportConfig, request["export"])
    release = load_verified(request["files"])
    expected = json.loads(Path(request["expected_settings"]).read_text("utf-8"))
    with np.load(request["source_outputs"], allow_pickle=False) as archive:
        source = {name: archive[name] for name in archive.files}
    with np.load(request["tokens"], allow_pickle=False) as archive:
        tokens = archive[SPLIT]

    compared = endpoint_checks.check_settings(release.manifest, expected)
    compared.append(
        rows.comparison(
            "4.1",
            "parameters_identity",
            "",
            request["trained_parameters_sha256"],
            release.manifest["parameters"]["sha256"],
            "the artifact of the training",
        )
    )
    compared.append(endpoint_checks.check_guarantee(release.manifest))
    compared += endpoint_checks.check_outputs(release, source)
    compared += generation_checks.check_rules()
    refused = generation_checks.check_refusals()
    with tempfile.TemporaryDirectory() as folder:
        refused += check_altered(request["files"], Path(folder))
    measured = process_rows(request["exporting_process_id"])
    measured += endpoint_checks.check_parameters(release, settings.prompts[0].encode())
    generated = []
    documents = [decode(row) for row in tokens]
    sample = tokens[: settings.heldout_documents or len(tokens)]
    for policy in POLICIES:
        entry.report(event="policy", message=f"reloaded release {policy}")
        measured += endpoint_checks.check_loss(release, policy, sample)
        refused += endpoint_checks.check_boundary(release, policy)
        generated += demonstrations(release, policy, settings, documents)
        measured += generation_checks.check_reversals(
            release.endpoints[f"prefill-{policy}"],
            release.endpoints[f"decode-{policy}"],
            policy,
            documents[: len(sample)],
            release.context_tokens,
        )
    measured += generation_rows(generated, documents)
    measured += check_recomputed(
        release.endpoints["prefill-fp32"],
        "fp32",
        [row for row in generated if row["release_policy"] == "fp32"],
        release.context_tokens,
    )
    measured += sampling.check_temperatures()
    drawn, distinct = sampling.check_sampling(
        release.endpoints["prefill-fp32"],
        release.endpoints["decode-fp32"],
        b"",  # a good model leaves nothing open after a prompt of its grammar
        release.context_tokens,
    )
    entry.write_rows(out, "comparisons", [*compared, drawn])
    entry.write_rows(out, "measurements", [*measured, distinct])
    entry.write_rows(out, "refusals", refused)
    entry.write_rows(out, "generations", generated)


def forget_other_roots(root: Path) -> None:
    """Leaves ``root`` as the only place from which ``model`` can be imported.

    Args:
        root: Folder whose ``model`` package this program belongs to.
    """
    builtin = (
        importlib.machinery.BuiltinImporter,
        importlib.machinery.FrozenImporter,
        importlib.machinery.PathFinder,
    )
    # An editable install answers through a finder of its own, after these three.
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder in builtin]
    sys.path[:] = [
        place
        for place in sys.path
        if Path(place).resolve() == root
        or not Path(place, "model", "__init__.py").is_file()
    ]


def process_rows(exporting_process_id: int) -> list[rows.Row]:
    """Claim 4.2: this is another process, and the training code is out of its reach."""
    modules = endpoint_checks.TRAINING_MODULES
    before = endpoint_checks.loaded(modules)
    found = endpoint_checks.importable(modules)
    is_same = os.getpid() == exporting_process_id
    detail = f"process {os.getpid()}, exported by {exporting_process_id}"
    return [
        rows.count(
            "4.2", "processes_shared_with_export", "", int(is_same), "processes", detail
        ),
        rows.count(
            "4.2",
            "training_modules_importable",
            "",
            len(found),
            "modules",
            ",".join(found) or f"tried {','.join(modules)}",
        ),
        rows.count(
            "4.2",
            "training_modules_loaded",
            "",
            len(before),
            "modules",
            ",".join(before),
        ),
    ]


def demonstrations(
    release: Release, policy: str, settings: ExportConfig, documents: list[bytes]
) -> list[rows.Row]:
    """Claim 4.5: the completions of every prompt under one policy."""
    return [
        generation_checks.demonstrate(
            release.endpoints[f"prefill-{policy}"],
            release.endpoints[f"decode-{policy}"],
            policy,
            prompt,
            generation_checks.expected_completion(prompt, documents),
            release.context_tokens,
            settings.maximum_new_tokens,
        )
        for prompt in settings.prompts
    ]


def generation_rows(
    generated: list[rows.Row], documents: list[bytes]
) -> list[rows.Row]:
    """Claims 4.4 and 4.5 over the real completions."""
    known_texts = {document.decode("utf-8", "replace") for document in documents}
    found = []
    for policy in POLICIES:
        own = [row for row in generated if row["release_policy"] == policy]
        tokens = [token for row in own for token in json.loads(row["token_ids"])]
        forbidden = sum(token in NEVER_EMITTED for token in tokens)
        found.append(
            rows.count("4.5", "demonstrations", policy, len(own), "completions")
        )
        # Where nothing was emitted, nothing forbidden could have been.
        if tokens:
            name = "forbidden_tokens_emitted"
            found.append(rows.count("4.4", name, policy, forbidden, "tokens"))
        known = [row for row in own if row["is_expected"] is not None]
        if known:
            name, hits = "demonstrations_expected", _as_expected(known)
            found.append(rows.count("4.5", name, policy, hits, "completions"))
        # such as the diagnostic prompt, whose group is in no split
        beyond = [
            row for row in known if row["prompt"] + row["expected"] not in known_texts
        ]
        if beyond:
            name, hits = "prompts_beyond_heldout_expected", _as_expected(beyond)
            detail = "; ".join(f"{row['prompt']} gives {row['text']}" for row in beyond)
            found.append(rows.count("4.5", name, policy, hits, "completions", detail))
    return found


def _as_expected(generated: list[rows.Row]) -> int:
    return sum(row["is_expected"] for row in generated)


if __name__ == "__main__":
    entry.run(main)
