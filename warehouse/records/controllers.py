"""Records of trainings by several controllers: who took part, and what each made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class ControllerAnswer:
    """The answer of one controller to its launcher, beside what it had to be."""

    TABLE: ClassVar[str] = "controllers"

    gang: str
    """Name of the gang within its execution."""
    process_index: int
    """Number of the controller, as its runtime has it."""
    process_count: int
    """Controllers, as its runtime has it."""
    given_index: int
    """Number that the launcher gave it."""
    given_count: int
    """Controllers that the launcher started."""
    nonce: str
    """Nonce that it answered with."""
    given_nonce: str
    """Nonce that the launcher gave to this controller alone."""
    code_sha256: str
    """SHA-256 of the code that it runs, digested by itself."""
    demanded_code_sha256: str
    """SHA-256 of the code that the launcher demanded."""
    process_id: int
    """Process id on its host, as it says."""
    host: str
    """Name of its machine."""
    platform: str
    """JAX platform of its default backend."""
    device_kind: str
    """Kind of its first device."""
    local_devices: str
    """Its devices as a JSON list: id, platform, kind, process, place in a slice."""
    local_device_count: int
    """How many devices it has."""
    global_device_count: int
    """How many devices all controllers have, as its runtime has it."""
    versions: str
    """Its numerics fingerprint as a JSON object."""
    environment: str
    """Variables that change what JAX does, as a JSON object."""


@dataclass(frozen=True, kw_only=True)
class ControllerUpdate:
    """One update of a training, as one of its controllers saw it."""

    TABLE: ClassVar[str] = "controller_updates"

    gang: str
    """Name of the gang within its execution."""
    label: str
    """Name of the training within the gang."""
    program: str
    """How updates are made: split, collective, or whole on one device."""
    process_index: int
    """Number of the controller."""
    process_count: int
    """Controllers of the gang."""
    nonce: str
    """Nonce of the controller, which ties the row to its answer."""
    update: int
    """Number of the update, from 1."""
    loss_sum_nats: float
    """Summed loss of the global batch in nats: the numerator of the mean."""
    valid_targets: int
    """Valid targets of the global batch: the denominator."""
    parameters_sha256: str
    """SHA-256 of the parameters that this controller holds after the update."""
    state_sha256: str
    """SHA-256 of parameters, moments and step that it holds after the update."""
    documents: str
    """Ids of the documents that it computed, in the order of the batch, as JSON."""
    targets_sha256: str
    """SHA-256 of the mask of valid targets of these documents."""
    global_documents: int
    """Documents of the global batch."""
    device_documents: str
    """Documents that each device computes, filling included, as a JSON list."""
    duration_ns: int
    """Time until the new state was ready, in nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class ControllerTraining:
    """What one controller says about a whole training."""

    TABLE: ClassVar[str] = "controller_trainings"

    gang: str
    """Name of the gang within its execution."""
    label: str
    """Name of the training within the gang."""
    program: str
    """How updates are made."""
    process_index: int
    """Number of the controller."""
    normalisation: str
    """What its lowered program divides by, and what devices add up."""
    tokenizer: str
    """Its tokenizer as a JSON object."""
    split_sha256: str
    """Digest of the splits that it read."""
    tokens_sha256: str
    """Digest of the training tokens that it read."""


@dataclass(frozen=True, kw_only=True)
class ControllerArray:
    """Where one array of a training lies, as one controller sees it."""

    TABLE: ClassVar[str] = "controller_arrays"

    gang: str
    """Name of the gang within its execution."""
    label: str
    """Name of the training within the gang."""
    program: str
    """How updates are made."""
    process_index: int
    """Number of the controller."""
    array_name: str
    """Place of the array in state or batch."""
    shape: str
    """Its whole shape as a JSON list."""
    shard_shape: str
    """Shape of the part on one device as a JSON list."""
    devices: int
    """Devices that it lies on."""
    is_on_all: bool
    """Whether each of them holds all of it."""
    sharding: str
    """How JAX names its partition."""
