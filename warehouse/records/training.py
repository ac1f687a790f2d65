"""Records of a training and of its evaluation, one row a measured thing.

These rows are the plain evidence; what a claim is judged on stands in the measurements
and comparisons beside them, or is derived from these rows by a view.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warehouse.schema import null_when


@dataclass(frozen=True, kw_only=True)
class Update:
    """One training update of one run of the training program."""

    TABLE: ClassVar[str] = "updates"

    run_label: str
    """Which training: `uninterrupted`, or the name of an interrupted or resumed one."""
    update: int
    """Number of the update, from 1."""
    epoch: int
    """Epoch of the batch, from 0."""
    cursor: int
    """Documents of the epoch consumed before the batch."""
    loss_nats: float
    """Mean loss per valid target before the update, with dropout, in nats."""
    valid_targets: int
    """Valid targets of the batch: bytes and EOS, never PAD."""
    cumulative_valid_targets: int
    """Valid targets of all updates up to and with this one."""
    learning_rate: float
    """Learning rate that the update was made with, by its schedule, float32."""
    duration_ns: int
    """Time until the new state and the loss were ready, tracing excluded."""


@dataclass(frozen=True, kw_only=True)
class UpdateDigest:
    """One digest of what a traced update consumed or produced."""

    TABLE: ClassVar[str] = "update_digests"

    run_label: str
    """Which training, as in `updates`."""
    update: int
    """Number of the update, from 1."""
    kind: str
    """What is digested: document_ids, order, cursor, epoch, step, dropout_key,
    loss_bits, gradients, first_moment, second_moment, parameters, or average where the
    training keeps an average of its parameters."""
    leaf: str
    """Name of the parameter, empty where the kind has one value."""
    dtype: str
    """NumPy name of the type of the values."""
    shape: str
    """Shape of the values as a JSON list, for instance [24, 72]."""
    sha256: str
    """SHA-256 over dtype, shape and bytes, as hex."""


@dataclass(frozen=True, kw_only=True)
class NegativeControl:
    """One update of a training that was restored with one planted fault."""

    TABLE: ClassVar[str] = "negative_controls"

    control: str
    """Planted fault, such as `adam_restarted`; `none` for the restore without one."""
    update: int
    """Number of the update, from 1."""
    first_kind: str
    """First kind of digest that differs, causes before effects; empty when none."""
    first_leaf: str
    """Its parameter; empty where the kind has one value or none differs."""
    first_difference: str
    """Index and ulp, or both values, where the two part; empty when nowhere."""
    differing_leaves: int
    """Digests of the update that differ from those of the uninterrupted training."""
    loss_nats: float
    """Mean loss per valid target before the update, in nats."""
    uninterrupted_loss_nats: float
    """The same of the uninterrupted training."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Summed loss of one state of the parameters on one split."""

    TABLE: ClassVar[str] = "evaluations"

    release_policy: str
    """Release policy of the evaluated model: fp32, bf16 or w8a8."""
    split: str
    """Split that was evaluated: train, validation or heldout."""
    update: int
    """Updates made before the evaluation."""
    batch_documents: int
    """Documents of a batch; the fixed shape behind it may be larger."""
    documents: int
    """Documents evaluated."""
    loss_sum_nats: float
    """Losses of all valid targets in nats, summed in float64 in row order."""
    valid_targets: int
    """Valid targets: the denominator of the mean loss."""
    correct_targets: int
    """Valid targets that were the most likely next token."""


@dataclass(frozen=True, kw_only=True)
class TokenLoss:
    """The loss of one valid target, the finest evidence of an evaluation."""

    TABLE: ClassVar[str] = "token_losses"

    release_policy: str
    """Release policy of the evaluated model."""
    split: str
    """Split the document belongs to."""
    document_id: str
    """Document in the manifest."""
    position: int
    """Position of the input token, from 0; the target follows it."""
    target_token: int
    """Token to be predicted: a byte + 3, or EOS."""
    loss_nats: float
    """Negative logarithm of the probability of the target, in nats."""
    predicted_token: int
    """Most likely next token, over the whole vocabulary."""
    is_correct: bool
    """Whether the most likely token is the target."""


@dataclass(frozen=True, kw_only=True)
class AttentionWeight:
    """One attention weight of the system, beside the one of the reference."""

    TABLE: ClassVar[str] = "attention_weights"

    document_id: str
    """Document in the manifest."""
    block: int
    """Number of the block, from 0."""
    head: int
    """Number of the head, from 0."""
    query: int
    """Position that looks."""
    key: int
    """Position that is looked at."""
    weight: float
    """Weight the system gives the key, float32 without dropout."""
    reference_weight: float
    """Weight by plain NumPy loops in float64."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A loss that needs no model, to read a trained one against."""

    TABLE: ClassVar[str] = "baselines"

    name: str
    """Name of the baseline: training_frequency or entropy_floor."""
    split: str
    """Split it is computed on."""
    nats_per_token: float
    """Loss per valid target in nats."""
    rule: str
    """How it is computed, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """A mean loss with what it is a mean over, so that views know what it may meet."""

    TABLE: ClassVar[str] = "perplexities"

    name: str
    """What was scored: release, training_frequency, or the way in which counting was
    made incomparable with the release."""
    split: str
    """Split that was scored."""
    text_sha256: str
    """Digest of the ids, groups and bytes of that split."""
    tokenizer: str
    """Name and version of the tokenizer."""
    vocabulary_tokens: int
    """Tokens that share the probability."""
    mask_policy: str
    """Which targets count in sum and denominator."""
    loss_sum_nats: float
    """Losses of all targets that count, in nats."""
    counted_targets: int
    """Targets that count: the denominator of the mean."""
    expected_reason: Annotated[str | None, null_when("it is comparable")]
    """Reason code that a comparison with the release must give."""


@dataclass(frozen=True, kw_only=True)
class Initialization:
    """One training from one first seed, evaluated, or the reason why it failed."""

    TABLE: ClassVar[str] = "initializations"

    initialization_seed: int
    """Seed of the first parameters, below 2**32; order and dropout keep theirs."""
    is_released: bool
    """Whether it is the seed of the released training."""
    updates: int
    """Updates that were made; fewer than asked where it failed."""
    asked_updates: int
    """Updates that were asked for."""
    validation_nats_per_token: Annotated[float | None, null_when("it failed")]
    """Mean loss per valid target of validation, in nats."""
    heldout_nats_per_token: Annotated[float | None, null_when("it failed")]
    """Mean loss per valid target of held-out, in nats."""
    heldout_correct_targets: Annotated[int | None, null_when("it failed")]
    """Valid held-out targets that were the most likely next token."""
    heldout_valid_targets: int
    """Valid held-out targets: the denominator."""
    parameters_sha256: str
    """Digest of the last parameters; of those before the update that failed."""
    failure_reason: Annotated[str | None, null_when("it did not fail")]
    """Reason code of the refusal that ended it."""
