"""The stage that asks for the target, and says what is missing when it is not there.

What can be shown without it is shown: that all it has to run can be lowered for it, and
compiled for a named topology where the compiler is installed.
"""

import dataclasses
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from model.config import ModelConfig, TargetConfig, TrainConfig, to_dict
from model.refusal import ReasonCode
from tasks.accelerators import DEFAULTS, Accelerator, known_accelerator
from tasks.errors import ProgramFailed, ProgramRefused, ProgramTimedOut
from tasks.forked_programs import ForkServer, forking
from tasks.program_environment import controller_environment
from tasks.rehearsal import PROGRAMS, RECORDS
from tasks.rehearse_two import rehearsal_for, rehearse_two
from tasks.stage import stage
from tasks.target_at_hand import PROBE, ask_elsewhere, is_here
from tasks.target_challenge import new_challenge
from tasks.target_platforms import OTHER, STARTS_AS
from tasks.target_steps import target_steps
from tasks.tpu_compiler import ENVIRONMENT, INSTALL, has_compiler
from tasks.work import Work
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.inference import TargetStep
from warehouse.records.targets import (
    CompiledProgram,
    TargetAnswer,
    TargetDevice,
    TargetProgram,
    TargetSign,
)
from warehouse.store import Execution

EXPORT = "model.programs.export_for_targets"
COMPILE = "model.programs.compile_for_topology"
COMPILE_DEADLINE_SECONDS = 300.0
COMPILED = ("compiled_instructions", "instructions")
CLAIM = "5.6"
MEASURED_CLAIMS = ("5.1", "5.2", "5.3", "5.4", "5.5")
# A CPU dressed as a host of a slice: names alone must convince nobody.
DRESSED = {
    "TPU_ACCELERATOR_TYPE": "v5litepod-16",
    "TPU_WORKER_ID": "0",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "CUDA_VISIBLE_DEVICES": "0",
    "JAX_PLATFORMS": "cpu",
}


@stage(
    programs=(PROBE, EXPORT, COMPILE, *PROGRAMS),
    writes=(
        *(Measurement, Comparison, Refusal, TargetStep, TargetAnswer, TargetSign),
        *(TargetDevice, TargetProgram, CompiledProgram, *RECORDS),
    ),
)
def qualify_tpu(
    work: Work,
    tokens: Execution,
    trained: Execution,
    exported: Execution,
    model: ModelConfig,
    train: TrainConfig,
    target: TargetConfig,
) -> None:
    """Probes the target, which no CPU is, and rehearses on CPUs what it would do.

    What the target has to run is lowered for it, and compiled where that is possible.

    Args:
        work: The working side of this execution.
        tokens: The tokenized corpus.
        trained: The uninterrupted training, whose parameters are released.
        exported: The release that is to be qualified on the target.
        model: Shape of the model.
        train: Recipe of the training that is rehearsed and that a target repeats.
        target: Expected platform and accelerator.
    """
    accelerator = known_accelerator(target.accelerator, target.platform)
    programs = {"model": to_dict(model), "train": to_dict(train)}
    with (
        forking(controller_environment("cpu")) as fork_server,
        ThreadPoolExecutor(max_workers=1) as pool,
    ):
        rehearsal = rehearsal_for(work, tokens, model, train, fork_server)
        rehearsed = pool.submit(rehearse_two, rehearsal) if rehearsal else None
        _ask_for_the_target(work, target, fork_server)
        work.run(EXPORT, programs, label="exported")
        _compile(work, programs, accelerator)
        _record_steps(work, accelerator, exported.artifact("release.json").sha256)
        if rehearsed is not None:
            rehearsed.result()


def _ask_for_the_target(
    work: Work, target: TargetConfig, fork_server: ForkServer | None
) -> None:
    """Probes under every environment in which a CPU could pass for the target."""
    cpu = controller_environment("cpu")
    asked = {"target": to_dict(target), **dataclasses.asdict(new_challenge())}
    named_cpu = replace(target, platform="cpu")
    other = TargetConfig(
        platform=OTHER[target.platform],
        accelerator=DEFAULTS[OTHER[target.platform]],
    )
    real = {"JAX_PLATFORMS": STARTS_AS[target.platform]}
    mismatch, absent = ReasonCode.PLATFORM_MISMATCH, ReasonCode.TARGET_ABSENT
    for case, changes, environment, expected in (
        ("platform_cpu", {}, cpu, mismatch),
        ("platform_unset", {}, {"JAX_PLATFORMS": ""}, mismatch),
        ("cpu_named_as_slice", {}, DRESSED, mismatch),
        ("target_named_cpu", {"target": to_dict(named_cpu)}, cpu, mismatch),
        ("other_platform_on_cpu", {"target": to_dict(other)}, cpu, mismatch),
        ("other_code", {"code_sha256": "0" * 64}, cpu, ReasonCode.CODE_MISMATCH),
        ("platform_expected", {}, real, absent),
    ):
        request = {**asked, "case": case, **changes}
        _probe(work, request, environment, expected, fork_server)


def _record_steps(work: Work, accelerator: Accelerator, release_sha256: str) -> None:
    """Records what would demonstrate the target, step by step."""
    steps = target_steps(accelerator, release_sha256)
    work.record(*steps)
    for claim in MEASURED_CLAIMS:
        work.record(
            Measurement(
                claim=CLAIM,
                measure="target_steps",
                case_name=claim,
                value_count=sum(step.claim == claim for step in steps),
                unit="steps",
                detail="commands and expected rows in target_steps",
            )
        )


def _compile(work: Work, programs: Mapping[str, Any], accelerator: Accelerator) -> None:
    """Compiles for a topology, or records why that was not done."""
    if accelerator.platform != "tpu":
        # A GPU's compiler needs the GPU.
        accelerator = known_accelerator(DEFAULTS["tpu"])
    request = {**programs, "topology": accelerator.compiled_for}
    reason, detail = "compiler_absent", f"{INSTALL} && harness run"
    if has_compiler():
        try:
            work.run(
                COMPILE,
                request,
                label=accelerator.compiled_for,
                environment=ENVIRONMENT,
                deadline_seconds=COMPILE_DEADLINE_SECONDS,
            )
            return
        except (ProgramFailed, ProgramTimedOut) as error:
            reason, detail = "not_supported", str(error)
    measure, unit = COMPILED
    work.record(
        Measurement(
            claim="5.8",
            measure=measure,
            case_name="tpu",
            unit=unit,
            reason=reason,
            detail=detail,
        )
    )


def _probe(
    work: Work,
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    expected: ReasonCode,
    fork_server: ForkServer | None,
) -> None:
    """Runs the probe under one environment and records how it was refused.

    What the machine answered is kept either way. A probe that is *not* refused found
    the target; its rows are then kept as they are, and a platform is asked for that is
    not there.
    """
    received, message = None, ""
    case = str(request["case"])
    try:
        work.run(
            PROBE,
            request,
            label=case,
            environment=environment,
            fork_server=fork_server,
        )
    except ProgramRefused as refused:
        received, message = refused.code, str(refused)
        work.gather(refused.run)
    if received is None and is_here(work, request):
        case, received, message = ask_elsewhere(work, request)
    work.record(
        Refusal(
            claim=CLAIM,
            measure="target_refused",
            case_name=case,
            expected_reason=str(expected),
            received_reason=received,
            message=message,
        )
    )
