"""What hosts answered that were asked for a target: themselves, signs, devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """What one controller answered to its launcher."""

    TABLE: ClassVar[str] = "target_answers"

    case_name: str
    """Which of several probes this was; empty on a target."""
    platform: str
    """Platform that was expected: tpu or gpu."""
    accelerator: str
    """Accelerator that was expected, as its provider names it."""
    controller: int
    """Number of the controller, from 0."""
    controllers: int
    """Controllers that JAX has counted; 0 where no backend started."""
    hosts: int
    """Hosts that the accelerator has, by its launcher; 0 where none was launched."""
    host: str
    """Name of the machine."""
    process_id: int
    """Process id on that machine."""
    nonce: str
    """Number that the launcher gave out for this occasion; empty without one."""
    code_sha256_demanded: str
    """Digest of the code that the launcher demanded; empty where it demanded none."""
    code_sha256: str
    """Digest of the code that answered, computed from its files on that machine."""
    runtime: str
    """What the runtime says that it is; empty where no backend started."""
    matmul_precision: str
    """Default precision of matrix products in that process; None where unset."""
    versions: str
    """Python and the installed distributions that compute, as a JSON object."""
    environment: str
    """Variables that steer a runtime, as a JSON object; addresses as digests."""
    start_error: str
    """Why no backend started; empty where one did."""


@dataclass(frozen=True, kw_only=True)
class TargetAccelerator:
    """What the launcher asked for, which no host says; its answers are held to it."""

    TABLE: ClassVar[str] = "target_accelerators"

    accelerator: str
    """Name by which its provider sells it."""
    platform: str
    """Platform that JAX reports for it: tpu or gpu."""
    hosts: int
    """Machines that it has, each with a controller of its own."""
    devices: int
    """Devices on all of them, as JAX counts them."""
    kinds: str
    """What a device of it may be called, with commas; empty where any will do."""
    chip: str
    """Generation of its chips on the bus; empty where any will do."""


@dataclass(frozen=True, kw_only=True)
class TargetSign:
    """One condition of a target, and what a controller found."""

    TABLE: ClassVar[str] = "target_signs"

    case_name: str
    """Which of several probes this was; empty on a target."""
    controller: int
    """Number of the controller, from 0."""
    platform: str
    """Platform that was expected."""
    sign: str
    """Name of the condition."""
    is_there: bool
    """Whether what was found is what a target shows."""
    wanted: str
    """What a target shows."""
    found: str
    """What was found."""


@dataclass(frozen=True, kw_only=True)
class TargetDevice:
    """One device that JAX listed for a controller; a list alone proves nothing."""

    TABLE: ClassVar[str] = "target_devices"

    case_name: str
    """Which of several probes this was; empty on a target."""
    controller: int
    """Number of the controller that listed it, from 0."""
    device: int
    """Id of the device."""
    platform: str
    """Platform of the device, as JAX names it."""
    kind: str
    """Kind of the device, as its runtime names it."""
    process: int
    """Number of the controller that it belongs to."""
    coordinates: str
    """Place in the slice as a JSON list; empty where the runtime names none."""
    is_local: bool
    """Whether it belongs to the controller that listed it."""


@dataclass(frozen=True, kw_only=True)
class TargetProgram:
    """One program that was lowered for a target, as its bytes read back."""

    TABLE: ClassVar[str] = "target_programs"

    platform: str
    """Platform of the target: tpu or gpu."""
    program: str
    """An endpoint with its policy, such as `prefill-fp32`, or `training-update`."""
    artifact: str
    """Artifact that holds the bytes."""
    sha256: str
    """SHA-256 of the bytes."""
    program_bytes: int
    """Size in bytes."""
    platforms: str
    """Platforms that the program says it is lowered for."""
    calling_convention_version: int
    """Version of the convention by which it is called."""
    devices: int
    """Devices that it is lowered for."""
    stablehlo_sha256: str
    """SHA-256 of the program inside."""
    matrix_products: str
    """Count of each kind of matrix product with its precision, as a JSON object."""


@dataclass(frozen=True, kw_only=True)
class CompiledProgram:
    """One program that was compiled for a named topology, and executed nowhere."""

    TABLE: ClassVar[str] = "compiled_programs"

    platform: str
    """Platform of the target."""
    program: str
    """An endpoint with its policy, such as `prefill-fp32`, or `training-update`."""
    topology: str
    """Name of the topology, such as `v5e:4x4`."""
    device_kind: str
    """Kind of its devices, as the compiler names it."""
    devices: int
    """Devices that the program runs on together."""
    compiler: str
    """Compiler, its version and its build."""
    label: str
    """What it is: compiled for this topology, not executed."""
    hlo_sha256: str
    """SHA-256 of the compiled program's text without source locations."""
    instructions: int
    """Instructions of the compiled program."""
    matrix_products: str
    """Count of each kind of matrix product with its precision, as a JSON object."""
    collectives: str
    """Count of each kind of collective operation, as a JSON object."""
    flops: float
    """Operations of a run, as the compiler counts them."""
    bytes_accessed: float
    """Bytes that a run touches, as the compiler counts them."""
    argument_bytes: int
    """Bytes of the arguments on a device."""
    output_bytes: int
    """Bytes of the outputs on a device."""
    temporary_bytes: int
    """Bytes that a run takes beside them on a device."""
    code_bytes: int
    """Bytes of the program on a device."""
    duration_ns: int
    """Time that lowering and compiling took, in nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class TargetTiming:
    """One synchronised duration on a target; shown when its numbers are accepted."""

    TABLE: ClassVar[str] = "target_timings"

    work: str
    """Region that was timed: training update, prefill or cached decode."""
    release_policy: str
    """Release policy of the program."""
    sample: int
    """Number of the warm sample, from 1."""
    process_id: int
    """Process id on the target."""
    duration_ns: int
    """Duration in nanoseconds."""
    timer: str
    """Clock and unit, and what lies between its start and stop."""
