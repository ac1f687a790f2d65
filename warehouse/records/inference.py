"""Records of the cache, the release, its timing and its target, one row a fact.

These rows are the plain evidence; what a claim is judged on stands in the measurements,
comparisons and refusals beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class CacheArray:
    """One array that a cache of one row keeps in storage."""

    TABLE: ClassVar[str] = "cache_arrays"

    cache_policy: str
    """Cache policy: `fp32`, `bf16` or `int8`."""
    array_name: str
    """Name of the array: keys, values, key_scales or value_scales."""
    dtype: str
    """Storage type, as NumPy names it."""
    shape: str
    """Shape as a JSON list: blocks, rows, context, heads and, for codes, head width."""
    array_bytes: int
    """Bytes of the array, counted from it."""


@dataclass(frozen=True, kw_only=True)
class LogitError:
    """What a precision changes in the logits of one valid held-out target."""

    TABLE: ClassVar[str] = "logit_errors"

    release_policy: str
    """Precision that is compared with float32: a policy or format of `policies`, or
    `bf16-cache` and `int8-cache`, float32 dense layers with that cache alone."""
    document_id: str
    """Id of the held-out document."""
    position: int
    """Position of the target in the document; 1 is the first after BOS."""
    largest_error: float
    """Largest absolute difference over the vocabulary, in logits."""
    mean_error: float
    """Mean absolute difference over the vocabulary, in logits."""
    divergence_nats: float
    """Kullback-Leibler divergence of the distribution from float32's, in nats."""
    loss_nats: float
    """Loss of the target under that precision, in nats."""
    is_top_changed: bool
    """Whether the most likely token is another one."""
    margin: float
    """Distance between the two largest float32 logits: what an error must bridge."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One exported endpoint of a release, as read back from its bytes."""

    TABLE: ClassVar[str] = "endpoints"

    endpoint: str
    """Function: `prefill` or `decode`."""
    release_policy: str
    """Release policy: `fp32`, `bf16` or `w8a8`."""
    artifact: str
    """Name of the artifact that holds it."""
    sha256: str
    """SHA-256 of the artifact's bytes."""
    artifact_bytes: int
    """Size of the artifact in bytes; parameters are not in it."""
    platforms: str
    """Platforms it is lowered for, separated by commas."""
    calling_convention_version: int
    """Version of the calling convention of jax.export."""
    stablehlo_sha256: str
    """SHA-256 of the serialised StableHLO program inside."""
    inputs: str
    """Dtype and shape of every argument, parameters first, as a JSON list."""
    outputs: str
    """Dtype and shape of every result, as a JSON list."""
    matrix_products: str
    """Count by operand and accumulator types, read off the program, as a JSON object;
    a program for several platforms holds each product once a platform."""
    float32_operations: str
    """Arithmetic operations, products aside, whose result stays float32."""


@dataclass(frozen=True, kw_only=True)
class LoweredDot:
    """One matrix product of an exported endpoint, read off its lowered program."""

    TABLE: ClassVar[str] = "lowered_dots"

    endpoint: str
    """Function: `prefill` or `decode`."""
    release_policy: str
    """Release policy of the endpoint."""
    platform: str
    """Platform of the branch that holds it."""
    place: int
    """Place in the program, from 1, counted within the platform."""
    dot: str
    """The layer it computes, by its place and shape: a dense layer, the output head,
    or one of the two products of attention."""
    is_dense: bool
    """Whether it is a dense layer, which the policy is about."""
    operand_type: str
    """Type of both operands, or both types with a comma where they differ."""
    accumulator_type: str
    """Type of the sum."""
    precision: str
    """Precision that the product asks for."""
    left_shape: str
    """Shape of the first operand as a JSON list."""
    right_shape: str
    """Shape of the second operand as a JSON list."""


@dataclass(frozen=True, kw_only=True)
class PrecisionPolicy:
    """One precision policy or number format: what it is, and what was measured."""

    TABLE: ClassVar[str] = "policies"

    policy: str
    """Name of the policy, or of the format that was tried."""
    kind: str
    """release, experiment (measured, not released) or format (tried alike)."""
    reached: str
    """How far this runtime took it: nothing, lowered, compiled or ran."""
    weights: str
    """Type of the dense layers' weights in storage, read off the arrays."""
    activations: str
    """Type of the first operand of a dense layer's lowered product."""
    accumulation: str
    """Type of its sum."""
    cache: str
    """Cache policy it was measured with."""
    scale_granularity: str
    """What shares a scale in the dense layers."""
    zero_point: str
    """Zero point of the codes."""
    clipping: str
    """What is clipped to the largest code."""
    calibration: str
    """Data that scales were chosen on."""
    lowered_operands: str
    """Types that the lowered program multiplies; "none" where there is none."""
    compiled_operands: str
    """Types that the compiled program multiplies, read off it; "unread" where it spells
    no product out, "none" where there is none."""
    weight_bytes: int
    """Bytes of the dense layers' weights in that format, scales included."""
    cache_bytes: int
    """Bytes of a cache of one row."""
    optimizer_bytes: int
    """Bytes of both moments in training, float32 under every policy; none travel."""
    artifact_bytes: Annotated[int | None, null_when("it cannot be exported")]
    """Bytes of prefill and decode, exported for CPU and TPU without parameters."""
    heldout_nats_per_token: Annotated[
        float | None, null_when("it did not run, or not to finite logits")
    ]
    """Held-out loss through the cache in nats."""
    heldout_targets: Annotated[
        int | None, null_when("it did not run, or not to finite logits")
    ]
    """Valid targets behind it."""
    largest_logit_error: Annotated[
        float | None, null_when("it did not run, or not to finite logits")
    ]
    """Largest difference to float32 logits."""
    logit_error_limit: float
    """Difference up to which a format counts as supported."""
    changed_top_tokens: Annotated[
        int | None, null_when("it did not run, or not to finite logits")
    ]
    """Targets whose most likely token is another one than under float32."""
    decode_ns: Annotated[
        int | None, null_when("it did not run, or not to finite logits")
    ]
    """Median of warm decodes in nanoseconds, while other stages may run."""
    decode_rows: Annotated[
        int | None, null_when("it did not run, or not to finite logits")
    ]
    """Rows that one such decode advances."""
    device: str
    """Device it was measured on."""
    reason: Annotated[str | None, null_when("it is supported")]
    """Reason code where it is not supported."""
    detail: str
    """What was observed."""


@dataclass(frozen=True, kw_only=True)
class PolicyArray:
    """One array that a precision policy keeps beside the cache."""

    TABLE: ClassVar[str] = "policy_arrays"

    policy: str
    """Name of the policy, or of the format that was tried."""
    part: str
    """`weights` of the dense layers, or `optimizer` state in training."""
    array_name: str
    """Name of the array; the scales of a layer end with `/scales`."""
    dtype: str
    """Storage type, as NumPy names it."""
    shape: str
    """Shape as a JSON list."""
    array_bytes: int
    """Bytes of the array, counted from it."""


@dataclass(frozen=True, kw_only=True)
class ReleaseSetting:
    """One setting that travels with a release in its manifest."""

    TABLE: ClassVar[str] = "release_settings"

    name: str
    """Dotted name in the manifest, such as `decoding.method`."""
    value: str
    """Its value, as text or JSON."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One greedy completion by the reloaded endpoints, success or failure."""

    TABLE: ClassVar[str] = "generations"

    release_policy: str
    """Release policy that generated it."""
    prompt: str
    """The prompt, without BOS."""
    expected: Annotated[
        str | None, null_when("the corpus has no rule for what follows")
    ]
    """Text that the grammar of the corpus asks for."""
    text: str
    """Generated text; invalid UTF-8 shows as U+FFFD."""
    token_ids: str
    """The emitted token ids as a JSON list, EOS included; they are the truth."""
    stop_reason: str
    """Why it ended: end_of_sequence, requested_tokens or context_end."""
    new_tokens: int
    """Emitted tokens, EOS included."""
    is_expected: Annotated[
        bool | None, null_when("the corpus has no rule for what follows")
    ]
    """Whether ids and end are exactly the expected ones."""
    note: str
    """Where it parts from the expected text, and by how many logits."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One synchronised duration of one call on the timing workload."""

    TABLE: ClassVar[str] = "timings"

    endpoint: str
    """What was timed: prefill, decode or time-to-first-token."""
    release_policy: str
    """Release policy of the endpoint."""
    process: int
    """Number of the timing process, from 1."""
    process_id: int
    """Its process id, as in program_executions."""
    sample: int
    """Number of the warm sample, from 1; 0 for the first call."""
    phase: str
    """`first` with an empty compilation cache, `first-cached` with a filled one, or
    `warm`."""
    duration_ns: int
    """Duration in nanoseconds."""
    timer: str
    """Clock and unit, and what lies between its start and stop."""


@dataclass(frozen=True, kw_only=True)
class TraceRegion:
    """One occurrence of a named region, read from the profiler trace."""

    TABLE: ClassVar[str] = "trace_regions"

    region: str
    """Name of the region."""
    occurrence: int
    """Number of the occurrence, from 1."""
    host_ns: int
    """Time until the call returned to Python, in nanoseconds, from the trace."""
    ready_ns: int
    """Time until every output was ready, in nanoseconds, from the trace."""
    operations: int
    """Events of compiled operations that began inside the region."""
    code_file: str
    """File of the line that opens the region, relative to the project."""
    code_line: int
    """Number of that line."""


@dataclass(frozen=True, kw_only=True)
class TargetStep:
    """One step that would demonstrate the target, and the evidence it has to leave."""

    TABLE: ClassVar[str] = "target_steps"

    accelerator: str
    """Accelerator type of the target, such as `v5litepod-16`."""
    step: int
    """Place in the order; stop at the first that fails."""
    claim: str
    """Claim that the step is evidence for; empty for preparation."""
    command: str
    """Exact command; names in capitals after $ are the user's."""
    expected_table: str
    """Table that must gain a row; empty for preparation."""
    expected_row: str
    """What that row must hold."""
