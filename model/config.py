"""What is trained, interrupted, evaluated and released, as frozen plain values.

Every number that can change a result stands here once, with its unit in its name, so
that a stage's configuration can be hashed into its key. The sentence under a field is
what people read about it in the form of a deployment. No JAX is imported: tasks and
flows may import this module, the presets and their limits, and ``model.refusal``, and
nothing else of ``model``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from model.settings import from_dict, setting_paths, to_dict

__all__ = [
    "POLICIES",
    "CacheConfig",
    "CertifyConfig",
    "DrillConfig",
    "EvaluateConfig",
    "ExportConfig",
    "InterruptConfig",
    "ModelConfig",
    "OptimizerConfig",
    "Policy",
    "ProfileConfig",
    "RunConfig",
    "TargetConfig",
    "TrainConfig",
    "fixture_manifest",
    "from_dict",
    "setting_paths",
    "to_dict",
]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of the transformer; defaults are the fixture's."""

    vocabulary_tokens: int = 259
    """Tokens the model knows; 259 are the bytes, BOS, EOS and padding."""
    context_tokens: int = 12
    """Tokens of the longest document, BOS included."""
    width: int = 24
    """Width of the residual stream, in numbers a position."""
    heads: int = 2
    """Attention heads a block; they share the width."""
    feed_forward_width: int = 48
    """Width of the hidden layer of a feed-forward network, in numbers."""
    blocks: int = 1
    """Transformer blocks, one after the other."""
    dropout_rate: float = 0.1
    """Share of activations that training sets to zero."""
    layer_norm_epsilon: float = 1e-5
    """What layer normalisation adds to the variance."""

    @property
    def head_width(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.width // self.heads


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam, with epsilon added outside the root and both moments in float32.

    What the plain recipe does without is off at 0. The average of parameters, where
    one is taken, is what is evaluated and released.
    """

    learning_rate: float = 3e-3
    """Peak of the learning rate: what a parameter moves by at a step of size 1."""
    beta1: float = 0.9
    """Share of the first moment that an update keeps."""
    beta2: float = 0.999
    """Share of the second moment that an update keeps."""
    epsilon: float = 1e-8
    """What Adam adds to the root of the second moment."""
    warmup_updates: int = 0
    """Updates over which the rate rises to its peak; 0 starts there."""
    decay_updates: int = 0
    """Updates over which the rate then falls; 0 keeps it."""
    final_learning_rate_share: float = 1.0
    """Share of the peak that the rate falls to."""
    weight_decay: float = 0.0
    """Share that a matrix loses an update, for a learning rate of 1."""
    final_weight_decay: float = 0.0
    """What the weight decay rises to, in the same unit."""
    weight_decay_rise_after: int = 0
    """Updates before the weight decay begins to rise."""
    weight_decay_rise_updates: int = 0
    """Updates over which the weight decay rises; 0 keeps it."""
    average_decay: float = 0.0
    """Share of the average of parameters that an update keeps; 0 takes none."""

    @property
    def is_averaged(self) -> bool:
        """Whether the average of parameters is released, not the last ones."""
        return self.average_decay > 0


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training recipe; a seed alone names each kind of randomness."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """Adam, how its rates move, and the average of parameters."""
    batch_documents: int = 16
    """Documents an update reads."""
    updates: int = 300
    """Updates of the training that nothing interrupts."""
    initialization_seed: int = 11
    """Seed of the first parameters."""
    order_seed: int = 12
    """Seed of the order of documents."""
    dropout_seed: int = 13
    """Seed of dropout."""
    traced_updates: int = 16
    """First updates whose inputs and outputs are kept as digests."""
    evaluate_every_updates: int = 6
    """Updates between two evaluations on validation."""
    overfit_documents: int = 16
    """Documents of the batch that is learned by heart."""
    overfit_updates: int = 400
    """Updates that learn this batch."""


@dataclass(frozen=True, kw_only=True)
class InterruptConfig:
    """Where a training process is killed, and how far the traces are compared."""

    points: tuple[int, ...] = (5,)
    """Updates after each of which a training process of its own is killed."""
    checkpoint_every_updates: int = 2
    """Updates between two checkpoints."""
    final_update: int = 16
    """Last update that a resumed training is compared at."""
    other_dropout_seed: int = 14
    """A seed of dropout that has to make a difference."""
    other_order_seed: int = 17
    """A seed of the order that has to make a difference."""


@dataclass(frozen=True, kw_only=True)
class CertifyConfig:
    """Where the long proofs interrupt a training, and how far they compare it."""

    points: tuple[int, ...] = tuple(range(13))
    """Updates after each of which a training process of its own is killed."""
    checkpoint_every_updates: int = 1
    """Updates between two checkpoints of these trainings."""
    chain: tuple[int, ...] = (3, 7, 12)
    """Updates after which one and the same training is killed again."""
    chain_checkpoint_every_updates: int = 2
    """Updates between two checkpoints of that training."""
    final_update: int = 16
    """Last update that a resumed training is compared at."""
    written_update: int = 2
    """Update in whose checkpoint write a process is killed."""
    diverging_learning_rate: float = 1e30
    """Learning rate of a training that has to diverge."""
    overflowing_learning_rate: float = 1e8
    """Learning rate of a training that has to overflow."""


@dataclass(frozen=True, kw_only=True)
class DrillConfig:
    """Which restore the faults are planted into, and how many updates follow it."""

    restored_update: int = 5
    """Update of the restore that planted faults are put into."""
    updates: int = 5
    """Updates that each planted fault is watched for."""


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """How held-out text is evaluated, and how much of it each check visits.

    Checks read the first documents of the held-out split.
    """

    batch_sizes: tuple[int, ...] = (1, 5, 7, 16, 32)
    """Documents a batch, one evaluation each; all have to agree."""
    batch_size_documents: int = 32
    """Held-out documents that batch sizes are compared on."""
    compiled_batch_sizes: tuple[int, ...] = (1, 5, 7, 16, 32)
    """Documents a batch of evaluations that are compiled."""
    future_documents: int = 32
    """Held-out documents whose future is changed."""
    future_positions: int = 0
    """Positions of each that are changed, drawn; 0 means every one."""
    future_tokens: int = 0
    """Tokens that each is changed to, drawn; 0 means every other."""
    reference_documents: int = 32
    """Held-out documents compared with the reference."""
    attention_documents: int = 32
    """Held-out documents whose attention is recorded."""
    gradient_documents: int = 3
    """Documents whose gradients are compared with the reference."""
    perturbation_seed: int = 15
    """Seed of the positions and tokens that are drawn."""
    initializations: int = 5
    """Trainings from first seeds, the released one included."""
    initialization_updates: int = 0
    """Updates of each other one; 0 means as many as the released."""


@dataclass(frozen=True, kw_only=True)
class CacheConfig:
    """Which lengths and documents the cache checks visit."""

    lengths: int = 0
    """Cache lengths compared with full recomputation; 0 means every one."""
    documents: int = 0
    """Held-out documents that are drawn; 0 means every one."""
    sampling_seed: int = 16
    """Seed of this draw."""


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """What the exported endpoints are lowered for and demonstrated on.

    Losses are computed through the endpoints on the first held-out documents.
    """

    platforms: tuple[str, ...] = ("cpu", "tpu")
    """Platforms that endpoints are lowered for."""
    prompts: tuple[str, ...] = ("dbea|", "aaed|", "adeb|", "abc|")
    """Texts that the reloaded endpoints go on from."""
    maximum_new_tokens: int = 12
    """Tokens after which a generation is stopped."""
    heldout_documents: int = 0
    """Held-out documents evaluated through endpoints; 0 means every one."""


@dataclass(frozen=True, kw_only=True)
class ProfileConfig:
    """How often the timing workload is sampled, and what it is."""

    warm_samples: int = 30
    """Timed calls of an endpoint in a process, after the first."""
    processes: int = 3
    """Fresh processes that are timed, one after the other."""
    regions: int = 5
    """Repetitions of the traced work."""
    prompt: str = "abc|"
    """Text of the timed generation."""


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """The device platform that is to be qualified beside the CPU."""

    platform: str = "tpu"
    """JAX platform of the target."""
    accelerator: str = "v5litepod-16"
    """Accelerator of the target, as its provider names it."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The number formats of a release: its dense layers and its cache."""

    name: str
    """Name of the policy."""
    dense: str
    """Number format of the dense layers."""
    cache: str
    """Number format of the cache."""


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            Policy(name="fp32", dense="fp32", cache="fp32"),
            Policy(name="bf16", dense="bf16", cache="bf16"),
            Policy(name="w8a8", dense="w8a8", cache="int8"),
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One configuration a stage, and the preset they were taken from."""

    preset: str
    """Preset that the configuration was taken from."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """Shape of the transformer."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """Recipe and seeds of the training."""
    interrupt: InterruptConfig = field(default_factory=InterruptConfig)
    """Where `qualify` kills a training, and how far it compares."""
    certify: CertifyConfig = field(default_factory=CertifyConfig)
    """Where the long proofs interrupt a training."""
    drill: DrillConfig = field(default_factory=DrillConfig)
    """Which restore faults are planted into."""
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    """How held-out text is evaluated."""
    cache: CacheConfig = field(default_factory=CacheConfig)
    """Which lengths and documents the cache checks visit."""
    export: ExportConfig = field(default_factory=ExportConfig)
    """What endpoints are lowered for and demonstrated on."""
    profile: ProfileConfig = field(default_factory=ProfileConfig)
    """How often the timing workload is sampled."""
    target: TargetConfig = field(default_factory=TargetConfig)
    """The device platform to qualify."""


def fixture_manifest() -> Path:
    """Returns the manifest of the committed fixture corpus inside this package."""
    return Path(__file__).parent / "data" / "fixture" / "manifest.json"
