"""What several controllers computed, against the same training in one process.

Rows of every controller come from the files that it wrote; what they have to be follows
from the schedule of the training, worked out here once more, and from the production
update of one process.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.batches import Cursor, take_batch
from model.checks.differences import largest_difference, largest_value
from model.checks.rows import Row, comparison, count, real
from model.config import ModelConfig, TrainConfig
from model.corpus import Corpus
from model.digests import array_sha256
from model.parameters import parameter_table
from model.tokenizer import PAD

AGREEMENT, CONFIGURATION, RESTART, PARTS = "5.10", "5.11", "5.12", "5.15"
ONE_PROCESS = "the production update in one process"
ONE_SPLIT = "the split program in one process"
SHARDED = "sharded"
"""Program whose state lies in parts."""
SCHEDULE = "the schedule of the training"

Rows = Sequence[Mapping[str, Any]]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """One training as all of its controllers told of it."""

    program: str
    """How updates were made."""
    updates: Sequence[Rows]
    """Rows of `controller_updates`, controller by controller."""
    trainings: Rows
    """The row of `controller_trainings` of each controller."""
    arrays: Sequence[Rows]
    """Rows of `controller_arrays`, controller by controller."""
    devices: int
    """Devices of all controllers together."""

    def of_update(self, update: int) -> Rows:
        """Returns the row of each controller for one update."""
        return [row for rows in self.updates for row in rows if row["update"] == update]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the training is."""

    model: ModelConfig
    train: TrainConfig
    corpus: Corpus
    last_update: int

    def batches(self) -> Iterator[np.ndarray]:
        """Yields the rows of the training split of each batch, in order."""
        cursor, documents = Cursor(), len(self.corpus.tokens["train"])
        for _ in range(self.last_update):
            rows, cursor = take_batch(
                cursor,
                order_seed=self.train.order_seed,
                documents=documents,
                batch_documents=self.train.batch_documents,
            )
            yield rows


def agreement(
    case: str,
    expected: Rows,
    trained: Trained,
    ends: tuple[Arrays, Arrays],
    begin: Arrays,
) -> list[Row]:
    """Returns how far a training by controllers is from that of one process.

    Args:
        case: Name of the program.
        expected: Rows of the production update in one process.
        trained: The training by controllers.
        ends: Last state of one process, and of controller 0.
        begin: Parameters that the training began with.
    """
    claim = PARTS if trained.program == SHARDED else AGREEMENT
    owed = ", ".join(str(row["update"]) for row in expected)
    rows = [
        comparison(
            claim,
            "rehearsed_updates",
            f"{case}/controller-{number}",
            owed,
            ", ".join(str(row["update"]) for row in made) or "none",
            ONE_PROCESS,
        )
        for number, made in enumerate(trained.updates)
    ]
    targets, apart = 0, 0
    losses: list[float] = []
    for wanted in expected:
        found = trained.of_update(wanted["update"])
        states = {row["state_sha256"] for row in found}
        apart += len(states) != 1
        for row in found:
            wrong = abs(row["valid_targets"] - wanted["valid_targets"])
            targets = max(targets, wrong)
            losses.append(abs(_mean(row) - _mean(wanted)))
    return [
        *rows,
        count(claim, "rehearsed_targets_beyond_reference", case, targets, "targets"),
        real(claim, "rehearsed_loss_difference", case, largest_value(losses), "nats"),
        *apart_at_the_end(claim, case, ends, begin),
        count(claim, "rehearsed_updates_apart", case, apart, "updates"),
    ]


def apart_at_the_end(
    claim: str, case: str, ends: tuple[Arrays, Arrays], begin: Arrays
) -> list[Row]:
    """Returns how far the last state of a training is from another one.

    Args:
        claim: Claim of the rows.
        case: Name of their case.
        ends: The last state that is held against, and that of the training.
        begin: Parameters that both began with.
    """
    far, name = parameter_difference(*ends)
    moment, moved = moment_difference(*ends), movement_difference(*ends, begin)
    return [
        real(claim, "rehearsed_parameter_difference", case, far, "1", name),
        real(claim, "rehearsed_movement_difference", case, moved, "1"),
        real(claim, "rehearsed_moment_difference", case, moment, "1"),
    ]


def _mean(row: Mapping[str, Any]) -> float:
    return float(row["loss_sum_nats"]) / int(row["valid_targets"])


def parameter_difference(expected: Arrays, measured: Arrays) -> tuple[float, str]:
    """Returns the largest difference of a parameter, and which it is.

    Key biases are left out: softmax ignores what is the same for all keys, so their
    gradient is zero but for rounding, of which Adam makes whole steps. Their gradient
    is part of `moment_difference`.

    Args:
        expected: Arrays of one training state by their names in a checkpoint.
        measured: Those of the other.
    """
    found = {
        name: largest_difference(
            _determined(name, array), _determined(name, measured[name])
        )
        for name, array in expected.items()
        if name.startswith("parameters/")
    }
    worst = largest_value(found.values())
    named = (name for name, far in found.items() if far == worst or math.isnan(far))
    return worst, next(named, "")


def movement_difference(expected: Arrays, measured: Arrays, begin: Arrays) -> float:
    """Returns the distance between two ends, as a share of how far one of them moved.

    Adam makes of a gradient near its epsilon a step that depends on its last bits, so
    that single parameters may part by much more than their gradients do. All together
    are not moved by a few.

    Args:
        expected: Arrays of one training state by their names in a checkpoint.
        measured: Those of the other.
        begin: Parameters by name that both began with.
    """
    apart = moved = 0.0
    for name, array in begin.items():
        first = _determined(name, array).astype(np.float64)
        one = _determined(name, expected[f"parameters/{name}"]).astype(np.float64)
        other = _determined(name, measured[f"parameters/{name}"]).astype(np.float64)
        apart += float(np.square(one - other).sum())
        moved += float(np.square(one - first).sum())
    return math.sqrt(apart / moved) if moved else math.inf


def _determined(name: str, array: np.ndarray) -> np.ndarray:
    """Returns the entries of a parameter that its gradient determines."""
    if not name.endswith("c_attn.bias"):
        return array
    query, _, value = np.split(array, 3)
    return np.concatenate([query, value])


def moment_difference(expected: Arrays, measured: Arrays) -> float:
    """Returns the largest difference of a first moment, linear in the gradients."""
    return largest_value(
        largest_difference(x, measured[name])
        for name, x in expected.items()
        if name.startswith("first_moment/")
    )


def same_states(
    claim: str,
    measure: str,
    case: str,
    expected: Rows,
    updates: Sequence[Rows],
    source: str = ONE_SPLIT,
) -> list[Row]:
    """Returns one comparison for each controller and update that it made.

    Args:
        claim: Claim of the rows.
        measure: Their measure.
        case: First part of the name of their case; empty for none.
        expected: Rows of the training that nothing interrupted.
        updates: Rows of `controller_updates`, controller by controller.
        source: What that training is.
    """
    owed = {row["update"]: row["state_sha256"] for row in expected}
    rows = []
    for number, made in enumerate(updates):
        for row in made:
            place = f"update-{row['update']:02d}/controller-{number}"
            rows.append(
                comparison(
                    claim,
                    measure,
                    f"{case}/{place}" if case else place,
                    owed.get(row["update"], "no such update"),
                    row["state_sha256"],
                    source,
                )
            )
    return rows


def split_states(expected: Rows, updates: Sequence[Rows]) -> list[Row]:
    """Returns one comparison for each controller and update of a split training.

    Args:
        expected: Rows of the split training in one process.
        updates: Rows of `controller_updates`, controller by controller.
    """
    case = f"processes-{len(updates)}"
    return same_states(AGREEMENT, "rehearsed_split_state", case, expected, updates)


def configuration(case: str, declared: Declared, trained: Trained) -> list[Row]:
    """Returns what each controller trained with against what was declared.

    Args:
        case: Name of the program.
        declared: What the training is.
        trained: The training by controllers.
    """
    claim = PARTS if trained.program == SHARDED else CONFIGURATION
    rows = [_documents_in_order(claim, case, declared, trained)]
    for number, told in enumerate(trained.trainings):
        expected = _expected(declared, trained, trained.updates[number])
        measured = _measured(told, trained.updates[number], trained.arrays[number])
        rows += [
            comparison(
                claim,
                "rehearsed_configuration",
                f"{name}/{case}/controller-{number}",
                value,
                measured[name],
                SCHEDULE,
            )
            for name, value in expected.items()
        ]
    return rows


def _documents_in_order(
    claim: str, case: str, declared: Declared, trained: Trained
) -> Row:
    """Whether the documents of all controllers, side by side, are the batch."""
    ids = declared.corpus.document_ids["train"]
    owed = [[ids[row] for row in rows] for rows in declared.batches()]
    made, parted = [], []
    for update, wanted in enumerate(owed, 1):
        lists = [json.loads(row["documents"]) for row in trained.of_update(update)]
        made.append([name for names in lists for name in names])
        if made[-1] != wanted:
            parted.append(f"update {update}: {made[-1]} where {wanted} is the batch")
    return comparison(
        claim,
        "rehearsed_configuration",
        f"documents/{case}",
        _digest(owed),
        _digest(made),
        SCHEDULE,
        parted[0] if parted else "",
    )


def _expected(declared: Declared, trained: Trained, made: Rows) -> dict[str, str]:
    corpus, train, devices = declared.corpus, declared.train, trained.devices
    is_split = trained.program == "split"
    size, longer = divmod(train.batch_documents, devices)
    most = -(-train.batch_documents // devices)
    shares = [size + (i < longer) if is_split else most for i in range(devices)]
    row_of = {name: row for row, name in enumerate(corpus.document_ids["train"])}
    masks = []
    for row in made:
        own = [row_of[name] for name in json.loads(row["documents"])]
        masks.append(array_sha256(corpus.tokens["train"][own, 1:] != PAD))
    tokens = declared.model.context_tokens
    rows, added, laid_out, on = str(train.batch_documents), "", "", 1
    if not is_split:
        on, filled = devices, most * devices
        rows = f"{filled}x{tokens}"
        added = f", added up over {devices} devices" if devices > 1 else ""
        laid_out = f"; batch [{most}, {tokens + 1}] of [{filled}, {tokens + 1}]"
    # Parameters, two moments, perhaps an average; and the step.
    trees = 4 if train.optimizer.is_averaged else 3
    shapes = [spec.shape for spec in parameter_table(declared.model)]
    parted = 0
    if trained.program == SHARDED and devices > 1:
        # An array lies in parts where one of its lengths can be cut into equal ones.
        parted = sum(any(n % devices == 0 for n in shape) for shape in shapes)
    whole = trees * (len(shapes) - parted) + 1
    return {
        "tokenizer": json.dumps(corpus.description["tokenizer"], sort_keys=True),
        "data": f"{corpus.split_sha256} {array_sha256(corpus.tokens['train'])}",
        "masks": _digest(masks),
        "global_batch": ", ".join(str(len(batch)) for batch in declared.batches()),
        "device_batch": json.dumps(shares),
        "placement": f"{whole} arrays whole on {on}{laid_out}"
        + (f"; {trees * parted} in parts" if parted else ""),
        "normalisation": f"sum of i32[{rows}]{added}",
    }


def _measured(told: Mapping[str, Any], made: Rows, arrays: Rows) -> dict[str, str]:
    state = [row for row in arrays if row["array_name"].startswith(".")]
    whole = [
        row for row in state if row["is_on_all"] and row["shape"] == row["shard_shape"]
    ]
    devices = " and ".join(sorted({str(row["devices"]) for row in whole}))
    tokens = [row for row in arrays if row["array_name"] == "['tokens']"]
    batch = "".join(f"; batch {row['shard_shape']} of {row['shape']}" for row in tokens)
    parted = len(state) - len(whole)
    return {
        "tokenizer": told["tokenizer"],
        "data": f"{told['split_sha256']} {told['tokens_sha256']}",
        "masks": _digest([row["targets_sha256"] for row in made]),
        "global_batch": ", ".join(str(row["global_documents"]) for row in made),
        "device_batch": " and ".join(sorted({row["device_documents"] for row in made})),
        "placement": f"{len(whole)} arrays whole on {devices}{batch}"
        + (f"; {parted} in parts" if parted else ""),
        "normalisation": told["normalisation"],
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
