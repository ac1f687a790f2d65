"""What no stage could run, or could prove anything with, is refused before it starts.

Apart from the values themselves, so that a stage whose key holds their source does not
run again because a sentence here has changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from model.config import InterruptConfig, ModelConfig, RunConfig, TrainConfig
from model.refusal import ReasonCode, Refused


def validate(config: RunConfig) -> None:
    """Refuses a configuration that no stage could run.

    Raises:
        Refused: With one sentence for the first setting that has no meaning.
    """
    for group in fields(config):
        if group.name != "preset":
            _validate_numbers(group.name, getattr(config, group.name))
    model, train, interrupt = config.model, config.train, config.interrupt
    require(
        model.width % model.heads == 0,
        f"model.width {model.width} does not divide by model.heads {model.heads}",
        "a multiple of model.heads",
    )
    require(
        all(point <= train.updates for point in interrupt.points)
        and bool(interrupt.points),
        f"interrupt.points is {list(interrupt.points)}",
        f"one or more updates between 0 and train.updates ({train.updates})",
    )
    _validate_last_update("interrupt", interrupt.points, interrupt.final_update, train)
    certify = config.certify
    require(
        bool(certify.points),
        f"certify.points is {list(certify.points)}",
        "one or more updates from 0",
    )
    require(
        list(certify.chain) == sorted(set(certify.chain)) and bool(certify.chain),
        f"certify.chain is {list(certify.chain)}",
        "one or more updates from 1 in rising order",
    )
    kills = (*certify.points, *certify.chain, certify.written_update)
    _validate_last_update("certify", kills, certify.final_update, train)
    last = last_drilled_update(config)
    require(
        last <= train.traced_updates,
        f"drill.updates is {config.drill.updates} after drill.restored_update"
        f" ({config.drill.restored_update})",
        f"at most update train.traced_updates ({train.traced_updates}), or faults are"
        " compared with nothing",
    )
    for name in ("batch_sizes", "compiled_batch_sizes"):
        sizes = getattr(config.evaluate, name)
        require(
            bool(sizes),
            f"evaluate.{name} is {list(sizes)}",
            "one or more sizes of at least 1",
        )
    require(
        config.target.platform in TARGET_PLATFORMS,
        f"target.platform is {config.target.platform!r}",
        f"of {', '.join(TARGET_PLATFORMS)}: a CPU is where the reference runs",
    )
    _validate_size(model)
    _validate_interruption(train, interrupt)
    _validate_release(config)


def last_drilled_update(config: RunConfig) -> int:
    """Returns the last update that is made with a planted fault."""
    return config.drill.restored_update + config.drill.updates


UPDATES_BEYOND_A_KILL = 4
"""Updates a comparison needs: an optimizer fault does not show in the next loss."""


def _validate_last_update(
    group: str, points: Sequence[int], final_update: int, train: TrainConfig
) -> None:
    require(
        max(points) + UPDATES_BEYOND_A_KILL <= final_update <= train.traced_updates,
        f"{group}.final_update is {final_update}",
        f"at least {UPDATES_BEYOND_A_KILL} more than every one of {group}.points"
        f" {sorted(set(points))} and at most train.traced_updates"
        f" ({train.traced_updates}), or too little is compared",
    )


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The values a number may have, as far as no other setting decides about it."""

    allowed: str
    """These values in words, as the end of a sentence."""
    minimum: float = 0
    is_minimum_allowed: bool = True
    maximum: float | None = None
    is_maximum_allowed: bool = True

    def hold(self, value: float) -> bool:
        """Returns whether `value` is one of these."""
        if value < self.minimum or (
            value == self.minimum and not self.is_minimum_allowed
        ):
            return False
        return (
            self.maximum is None
            or value < self.maximum
            or (value == self.maximum and self.is_maximum_allowed)
        )


# A key holds 32 bits of a seed; a larger one would silently be another seed.
_SEED_LIMIT = 2**32

_POSITIVE = Bounds(allowed="more than 0", is_minimum_allowed=False)
_ZERO_OR_MORE = Bounds(allowed="0 or more")
_SHARE = Bounds(allowed="from 0 up to below 1", maximum=1, is_maximum_allowed=False)
_SEED = Bounds(
    allowed="0 or more, below 2**32", maximum=_SEED_LIMIT, is_maximum_allowed=False
)
_AN_UPDATE = Bounds(allowed="updates from 0")
_A_SIZE = Bounds(allowed="sizes of at least 1", minimum=1)

_BOUNDS: Mapping[str, Bounds] = MappingProxyType(
    {
        "model.vocabulary_tokens": Bounds(
            allowed="259, the tokens of the byte tokenizer", minimum=259, maximum=259
        ),
        "model.context_tokens": Bounds(
            allowed="at least 3: BOS and one letter of two bytes", minimum=3
        ),
        "train.optimizer.final_learning_rate_share": Bounds(
            allowed="more than 0 and at most 1", is_minimum_allowed=False, maximum=1
        ),
        "interrupt.points": _AN_UPDATE,
        "certify.points": _AN_UPDATE,
        "certify.chain": Bounds(allowed="updates from 1", minimum=1),
        "evaluate.batch_sizes": _A_SIZE,
        "evaluate.compiled_batch_sizes": _A_SIZE,
    }
)

_SHARES = ("dropout_rate", "beta1", "beta2", "average_decay")
_ZERO_ALLOWED = (
    "initialization_updates",
    "future_positions",
    "future_tokens",
    "heldout_documents",
    "warmup_updates",
    "decay_updates",
    "weight_decay",
)


def bounds(path: str) -> Bounds:
    """Returns what the number, or each number of the list, at a path may be.

    Args:
        path: Dotted path of a setting, such as "train.updates".
    """
    group, _, name = path.rpartition(".")
    if path in _BOUNDS:
        return _BOUNDS[path]
    if name in _SHARES:
        return _SHARE
    if name.endswith("_seed"):
        return _SEED
    if group == "cache" or any(part in name for part in _ZERO_ALLOWED):
        return _ZERO_OR_MORE
    return _POSITIVE


def allowed_words(path: str, value: Any) -> str:
    """Returns what a setting may be, in words, as its refusal says it.

    Args:
        path: Dotted path of a setting.
        value: A value that it has.
    """
    if path == "export.platforms":
        return f"of {', '.join(PLATFORMS)}"
    if path == "target.platform":
        return f"of {', '.join(TARGET_PLATFORMS)}"
    numbers = value if isinstance(value, list | tuple) else [value]
    is_number = all(isinstance(number, int | float) for number in numbers)
    return bounds(path).allowed if is_number else "text"


def _validate_numbers(path: str, settings: Any) -> None:
    """Refuses numbers, alone or in a list, that are out of their bounds."""
    for name in (entry.name for entry in fields(settings)):
        value = getattr(settings, name)
        here = f"{path}.{name}"
        if hasattr(value, "__dataclass_fields__"):
            _validate_numbers(here, value)
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        shown = list(value) if isinstance(value, tuple) else value
        for number in numbers:
            if isinstance(number, int | float):
                allowed = bounds(here)
                require(allowed.hold(number), f"{here} is {shown}", allowed.allowed)


def validate_controllers(count: int, train: TrainConfig) -> None:
    """Refuses a gang that no rehearsal could be about.

    Args:
        count: Controllers of the whole gang.
        train: Recipe of what it trains.

    Raises:
        Refused: There are none to lose, or more than documents of a batch.
    """
    require(
        2 <= count <= train.batch_documents,
        f"controllers is {count}",
        f"2 to {train.batch_documents}, the documents of a batch",
    )


def require(met: bool, found: str, allowed: str) -> None:
    """Refuses a setting that does not meet its condition.

    Args:
        met: Whether it does.
        found: The setting and its value, as the beginning of a sentence.
        allowed: What would have been allowed.

    Raises:
        Refused: `setting_invalid`, where it does not.
    """
    if not met:
        raise Refused(
            ReasonCode.SETTING_INVALID, f"setting {found}; allowed is {allowed}"
        )


# A gibibyte of float32, and Adam holds two more: beyond it no sentence, but the
# machine would say no.
_PARAMETER_LIMIT = 2**28

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""What JAX can lower an endpoint for."""
TARGET_PLATFORMS = ("tpu", "gpu")
"""What JAX calls the platforms that can be a target."""


def _validate_size(model: ModelConfig) -> None:
    a_block = 4 * model.width + 2 * model.feed_forward_width
    rows = model.blocks * a_block + model.vocabulary_tokens + model.context_tokens
    require(
        rows * model.width <= _PARAMETER_LIMIT,
        f"model.width {model.width} with model.feed_forward_width"
        f" {model.feed_forward_width}, model.blocks {model.blocks} and"
        f" model.context_tokens {model.context_tokens} makes {rows * model.width}"
        " parameters",
        f"at most {_PARAMETER_LIMIT}",
    )


def _validate_interruption(train: TrainConfig, interrupt: InterruptConfig) -> None:
    require(
        len(set(interrupt.points)) == len(interrupt.points),
        f"interrupt.points is {list(interrupt.points)}",
        "each update once",
    )
    for name in ("order_seed", "dropout_seed"):
        seed = getattr(train, name)
        require(
            getattr(interrupt, f"other_{name}") != seed,
            f"interrupt.other_{name} is {seed}",
            f"another seed than train.{name}, or no difference can be seen",
        )


def _validate_release(config: RunConfig) -> None:
    platforms, prompts = config.export.platforms, config.export.prompts
    require(
        bool(platforms)
        and set(platforms) <= set(PLATFORMS)
        and len(set(platforms)) == len(platforms),
        f"export.platforms is {list(platforms)}",
        f"one or more of {list(PLATFORMS)}, each once",
    )
    require(bool(prompts), "export.prompts is []", "one or more prompts")
    longest = config.model.context_tokens - 1
    named = [("export.prompts", prompt) for prompt in prompts]
    for name, prompt in [*named, ("profile.prompt", config.profile.prompt)]:
        require(
            _is_prompt(prompt, longest),
            f"{name} holds {prompt[:40]!r}",
            f"text of at most {longest} bytes in UTF-8, model.context_tokens less BOS",
        )


def _is_prompt(text: str, longest_bytes: int) -> bool:
    try:
        return len(text.encode()) <= longest_bytes
    except UnicodeEncodeError:
        return False
