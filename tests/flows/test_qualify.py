"""The whole flow on real input: nine stages, their verdicts, and their reuse."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from flows.qualify import STAGES
from tasks.source_closure import source_closure

MEASURED = {
    1: set(range(14)),
    2: {1, 6, 7, 8, 9},
    3: set(range(1, 9)),
    4: {1, 2, 4, 5, 6, 7},
    5: {6},
}
REQUIRED = {
    f"{task}.{number}" for task, all_of in MEASURED.items() for number in all_of
}
NAMES = [stage.name for stage in STAGES]


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process of its own."""
    command = [sys.executable, "-m", "flows.command_line", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(root: Path, query: str) -> list[dict[str, object]]:
    """Returns the answer to a query as the command line gives it."""
    asked = harness("sql", query, "--format", "json", "--root", str(root))
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


@pytest.mark.timeout(600)
def test_every_measured_claim_is_accepted_and_no_other_is_refuted(
    qualified: Path,
) -> None:
    verdicts = {
        row["claim"]: row["verdict"]
        for row in rows(qualified, "select claim, verdict from verdicts")
    }
    refused = {
        claim: verdicts[claim]
        for claim in REQUIRED
        if verdicts[claim] not in ("accept", "accept (undrilled)")
    }
    assert refused == {}
    assert "revise" not in verdicts.values()
    assert verdicts["5.3"] == "not demonstrated"


@pytest.mark.timeout(600)
def test_literal_figures_of_the_fixture_are_in_the_evidence(qualified: Path) -> None:
    targets = rows(
        qualified,
        "select valid_targets from stg_splits where split = 'heldout'",
    )
    assert targets == [{"valid_targets": 276}]
    counted = rows(
        qualified,
        "select cache_policy, sum(array_bytes)::int as counted from stg_cache_arrays"
        " group by all order by counted desc",
    )
    assert counted == [
        {"cache_policy": "fp32", "counted": 2496},
        {"cache_policy": "bf16", "counted": 1344},
        {"cache_policy": "int8", "counted": 768},
    ]


@pytest.mark.timeout(600)
def test_a_second_run_reuses_every_stage_and_one_damaged_artifact_only_its_own(
    qualified: Path,
) -> None:
    again = harness("run", "--root", str(qualified))
    assert "0 stages executed, 9 reused" in again.stdout, again.stderr
    artifact = rows(
        qualified,
        "select sha256 from run_artifacts where artifact = 'corpus.json' limit 1",
    )[0]["sha256"]
    path = next((qualified / "artifacts").rglob(str(artifact)))
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(bytes(damaged))
    healed = harness("run", "--root", str(qualified))
    assert "1 stage executed, 8 reused" in healed.stdout, healed.stdout + healed.stderr
    why = harness("why", "latest", "tokenize_corpus", "--root", str(qualified))
    assert "corpus.json" in why.stdout
    assert "altered" in why.stdout


def test_only_stages_that_use_the_cache_depend_on_its_source() -> None:
    depending = [
        stage.name
        for stage in STAGES
        if "model.cache"
        in dict(
            source_closure(stage.definition.module, *stage.definition.programs).modules
        )
    ]
    # Timing runs what was exported, so it needs no source of the cache. The target's
    # programs are exported for its platforms from their source.
    assert depending == ["quantize_cache", "export_endpoints", "qualify_tpu"]


def test_the_stages_stand_in_the_order_of_the_mission() -> None:
    assert NAMES == [
        "tokenize_corpus",
        "train_model",
        "interrupt_training",
        "resume_training",
        "evaluate_heldout",
        "quantize_cache",
        "export_endpoints",
        "profile_runtime",
        "qualify_tpu",
    ]


def test_an_exported_release_is_told_by_its_digest(harness, qualified, tmp_path):
    """What a plan for a target expects is held against this line."""
    done = harness("export", "latest", tmp_path / "out", "--root", qualified)
    assert done.returncode == 0, done.stderr
    manifest = tmp_path / "out" / "export_endpoints" / "release.json"
    sha256 = hashlib.sha256(manifest.read_bytes()).hexdigest()
    assert done.stdout.endswith(f"Its release.json has SHA-256 {sha256}.\n")
