"""One controller among several: it joins, and answers the launcher's challenge.

JAX finds its devices once, at the first question, and a process that asks before it has
joined the others trains alone for ever without an error. So joining comes first, and
what the runtime then says about processes and devices is told, never what was asked
for. The answer carries the launcher's nonce and the digest of the code that runs.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax._src import distributed

import model
from model.folders import source_sha256
from model.refusal import ReasonCode, Refused
from model.runtime import describe

# Addresses say where a machine is, which is nobody's business.
HIDDEN_VARIABLES = ("HOSTNAME", "ADDRESS", "ENDPOINT", "COORDINATOR", "CACHE_DIR")
TOLD_VARIABLES = ("JAX_", "XLA_", "TPU_", "LIBTPU_", "CUDA_", "NCCL_", "NPROC")
MEETING_SECONDS = 1800
"""Longest wait for the others; the launcher loses its patience much earlier."""


class _Together:
    """What this process and the other controllers have in common."""

    meetings = itertools.count()
    is_code_shared = False


@dataclass(frozen=True, kw_only=True)
class Seat:
    """The place of one controller among all, and what it has to answer."""

    process: int
    """Its number, from 0; controller 0 coordinates."""
    processes: int
    """How many controllers there are."""
    coordinator: str | None
    """Address at which controller 0 is met; None for a controller alone."""
    platform: str
    """JAX platform that every device must have."""
    nonce: str
    """What the launcher asked this controller to repeat."""
    code_sha256: str
    """Digest of the code that the launcher demands."""
    initialization_seconds: int
    """How long it waits for the others to come."""
    heartbeat_seconds: int
    """How long another one may be silent before it counts as gone."""


def read_seat(request: Mapping[str, Any]) -> Seat:
    """Returns the seat that a request gives.

    Args:
        request: `process`, `processes`, `coordinator`, `platform`, `nonce`,
            `code_sha256`, optional `initialization_seconds`, `heartbeat_seconds`.

    Raises:
        Refused: `request_malformed` when one is absent or makes no sense.
    """
    try:
        seat = Seat(
            process=request["process"],
            processes=request["processes"],
            coordinator=request["coordinator"],
            platform=request["platform"],
            nonce=request["nonce"],
            code_sha256=request["code_sha256"],
            initialization_seconds=request.get("initialization_seconds", 60),
            heartbeat_seconds=request.get("heartbeat_seconds", 30),
        )
    except KeyError as error:
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"The request of a controller lacks {error.args[0]!r}.",
            [str(error.args[0])],
        ) from error
    is_alone = seat.coordinator is None
    if not 0 <= seat.process < seat.processes or (is_alone and seat.processes > 1):
        raise Refused(
            ReasonCode.REQUEST_MALFORMED,
            f"Controller {seat.process!r} of {seat.processes!r} at coordinator"
            f" {seat.coordinator!r} makes no sense; controllers count from 0, and"
            " several need a coordinator.",
            ["process"],
        )
    return seat


def join(seat: Seat) -> None:
    """Joins the other controllers, before any device is asked for.

    Raises:
        Refused: `controllers_apart` when the runtime sees another number of processes,
            or another place of this one, than was asked for; `platform_mismatch` when
            the platform that this process has to start on is not there.
    """
    initialise(seat)
    require_place(seat)


def initialise(seat: Seat) -> None:
    """Meets the others; asks for no device yet."""
    if seat.coordinator is not None:
        jax.distributed.initialize(
            seat.coordinator,
            seat.processes,
            seat.process,
            initialization_timeout=seat.initialization_seconds,
            heartbeat_timeout_seconds=seat.heartbeat_seconds,
        )


def require_place(seat: Seat) -> None:
    """Refuses to train in another place than was asked for.

    Raises:
        Refused: As `join`.
    """
    _require_backend(seat)
    found = (jax.process_index(), jax.process_count())
    if found != (seat.process, seat.processes):
        raise Refused(
            ReasonCode.CONTROLLERS_APART,
            f"The runtime sees controller {found[0]} of {found[1]} where"
            f" {seat.process} of {seat.processes} was asked for; initialise before"
            " anything asks for a device.",
            ["process"],
        )
    if seat.coordinator is not None and seat.platform == "cpu":
        # Here, because a target needs no private name of its JAX for this.
        from model.shared_code import share

        _Together.is_code_shared = share()


def _require_backend(seat: Seat) -> None:
    """Refuses a host on which the platform cannot even start."""
    try:
        jax.devices()
    except jax.errors.JaxRuntimeError:
        raise  # another controller is lost
    except RuntimeError as error:
        raise Refused(
            ReasonCode.PLATFORM_MISMATCH,
            f"Controller {seat.process} expected platform {seat.platform!r}, which"
            f" cannot start here ({str(error).splitlines()[0]}); run on hosts that"
            " have it.",
            ["platform"],
        ) from error


def meet(name: str) -> None:
    """Waits until every controller has come here as often as this one.

    Gloo gives up on a controller that comes half a minute later, and compiling takes
    longer where JAX finds nothing in its cache: so they meet before they exchange
    anything. JAX has no public name for its barrier; Orbax calls the same one.

    Args:
        name: Where they meet; for messages alone.
    """
    if jax.process_count() > 1:
        barrier = f"{name}-{next(_Together.meetings)}"
        client: Any = distributed.global_state.client
        client.wait_at_barrier(barrier, MEETING_SECONDS * 1000)


@contextmanager
def first_compiles() -> Iterator[None]:
    """Has controller 0 compile before the others, where they find its code then."""
    is_later = _Together.is_code_shared and jax.process_index() > 0
    if is_later:
        meet("compiled")
    yield
    if _Together.is_code_shared and not is_later:
        meet("compiled")


def answer(seat: Seat) -> dict[str, Any]:
    """Returns the answer to the launcher, plain JSON values by name.

    Everything is asked of the runtime, the system and the files that this process runs;
    of the request it repeats the nonce and what was demanded.

    Args:
        seat: The seat that was taken.
    """
    local = jax.local_devices()
    return {
        "process_index": jax.process_index(),
        "process_count": jax.process_count(),
        "nonce": seat.nonce,
        "code_sha256": running_code_sha256(),
        "process_id": os.getpid(),
        "host": platform.node(),
        "platform": jax.default_backend(),
        "device_kind": local[0].device_kind,
        "local_devices": json.dumps([_described(each) for each in local]),
        "local_device_count": len(local),
        "global_device_count": jax.device_count(),
        "versions": json.dumps(describe(), sort_keys=True),
        "environment": json.dumps(_environment(), sort_keys=True),
    }


def running_code_sha256() -> str:
    """Returns the digest of the package that this process has loaded."""
    return source_sha256(Path(model.__file__ or "").parent)


def require_demands(seat: Seat) -> None:
    """Refuses to train on another platform or with other code than is demanded.

    Raises:
        Refused: `platform_mismatch`, `code_mismatch`.
    """
    others = sorted({each.platform for each in jax.devices()} - {seat.platform})
    if others:
        raise Refused(
            ReasonCode.PLATFORM_MISMATCH,
            f"Controller {seat.process} expected platform {seat.platform!r} and found"
            f" {', '.join(others)} among {len(jax.devices())} devices; run on hosts"
            " that have it.",
            ["platform"],
        )
    found = running_code_sha256()
    if found != seat.code_sha256:
        raise Refused(
            ReasonCode.CODE_MISMATCH,
            f"Controller {seat.process} runs code {found[:12]} where the launcher"
            f" demands {seat.code_sha256[:12]}; bring the same code to every host.",
            ["code_sha256"],
        )


def _described(device: Any) -> dict[str, Any]:
    """Returns what tells a device from others; a CPU has no place in a slice."""
    named = ("id", "platform", "device_kind", "process_index", "coords", "core_on_chip")
    return {name: getattr(device, name, None) for name in named}


def _environment() -> dict[str, str]:
    """Returns the variables that change what JAX does."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(TOLD_VARIABLES)
        and not any(hidden in name for hidden in HIDDEN_VARIABLES)
    }
