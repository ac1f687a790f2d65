"""The rows that a result of a target gives, beside the reference of this machine.

Nothing of the result is believed but its bytes: signs are read again from what the host
observed, digests are taken again, differences are computed here. No limit stands here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from model import tokenizer
from model.checks import rows
from model.checks.target_reference import SPLITS, Reference
from model.checks.target_restart import HostTrainings
from model.checks.target_rows import (
    challenge_rows,
    endpoint_rows,
    sign_counts,
    trained_row,
    training_rows,
    workload_rows,
)
from model.config import ModelConfig, TrainConfig, from_dict, to_dict
from model.digests import array_sha256
from model.refusal import ReasonCode, Refused
from model.target_result import TRAINED_UPDATES, UNCOMMITTED_UPDATE
from model.target_signs import PLATFORMS, Sign, signs_of

RECIPE = (
    "optimizer",
    "batch_documents",
    *("order_seed", "dropout_seed", "initialization_seed"),
)
"""Fields of a training that its checkpoints keep."""


class Judge:
    """The result of one target beside the reference."""

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        request: Mapping[str, Any],
        reference: Reference | None = None,
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.request = request
        self.model = from_dict(ModelConfig, request["model"])
        self.train = from_dict(TrainConfig, request["train"])
        self.observed = read_json(folder / "probe" / "observed.json")
        self.hosts = int(request["accelerator"]["hosts"])
        self.observed["hosts"] = self.hosts
        platform = PLATFORMS[self.observed["platform"]]
        self.found = signs_of(self.observed, platform)
        self.trainings = HostTrainings(folder, manifest["steps"])
        self.trace = read_json(folder / "executed" / "trace.json")
        self.placed = read_json(folder / "executed" / "placement.json")
        self.reference = reference or Reference(self.model, self.train)
        self.tokens = self.reference.tokens
        tokens_file = folder / "tokens" / "artifacts" / "tokens.npz"
        self.target_tokens = read_arrays(tokens_file)

    def signs(self) -> list[rows.Row]:
        """Claim 5.1: every sign, and the workload on the lanes of the devices."""
        return [
            *sign_counts(self.found),
            *workload_rows(self.observed, self.trace),
        ]

    def challenge(self) -> list[rows.Row]:
        """Claim 5.2: the answer to this launcher, in the execution of the result."""
        asked = self.request
        found = {
            "nonce": (asked["nonce"], self.observed["nonce"]),
            "result_nonce": (asked["nonce"], self.manifest["nonce"]),
            "code": (asked["code_sha256"], self.observed["code_sha256"]),
            "result_code": (asked["code_sha256"], self.manifest["code_sha256"]),
        }
        return challenge_rows(found)

    def numbers(self) -> list[rows.Row]:
        """Claims 5.2, 5.3 and 5.5: how far the target parts from the reference."""
        silent = self.hosts - int(self.observed["process_count"])
        return [
            rows.count("5.2", "controllers_silent", "", max(0, silent), "controllers"),
            trained_row(
                len(self.placed["devices_of_state"]),
                int(self.request["accelerator"]["devices"]),
            ),
            *self._training_numbers(),
            *self._endpoint_numbers(),
            *self._choice(),
        ]

    def _choice(self) -> Iterator[rows.Row]:
        """Claim 5.5: what nobody committed was not chosen, although it lay there."""
        if self.trainings.has_uncommitted():
            chosen = self.trainings.restored_from()
            yield rows.count(
                *("5.5", "uncommitted_checkpoints_chosen", ""),
                *(int(chosen == UNCOMMITTED_UPDATE), "checkpoints"),
                f"update {chosen} was restored; {UNCOMMITTED_UPDATE} had no commit",
            )

    def _training_numbers(self) -> list[rows.Row]:
        expected = self.reference.updates
        measured = read_json(self.folder / "trained" / "records" / "updates.json")
        if len(measured) != len(expected):
            raise Refused(
                ReasonCode.ARTIFACT_METADATA_MISMATCH,
                f"the target trained {len(measured)} updates instead of "
                f"{len(expected)}",
            )
        return training_rows(expected, measured, self._trained_parameters(), self.model)

    def _trained_parameters(self) -> dict[str, np.ndarray]:
        update = f"update-{TRAINED_UPDATES:06d}"
        arrays = read_arrays(
            self.folder / "trained" / "checkpoints" / update / "arrays.npz"
        )
        prefix = "parameters/"
        return {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }

    def _endpoint_numbers(self) -> list[rows.Row]:
        """Logits of the target against this CPU's, for exactly the same parameters."""
        expected = self.reference.logits(self.folder / "parameters.npz")
        measured = read_arrays(self.folder / "endpoints" / "logits.npz")
        return endpoint_rows(expected, measured)

    def configuration(self) -> list[rows.Row]:
        """Claim 5.4: what was computed is what was declared."""
        batch = self.train.batch_documents
        shape = [batch, self.model.context_tokens + 1]
        platform = self.observed["platform"]
        precisions = {
            step["matmul_precision"] for step in self.manifest["steps"].values()
        }
        first = self.tokens["train"][:batch]
        count = int(is_valid(first).sum())
        described = read_json(self.folder / "tokens" / "artifacts" / "corpus.json")
        found = {
            "tokenizer": (
                text_of(tokenizer.describe()),
                text_of(described["tokenizer"]),
            ),
            "data": (digest_of(self.tokens), digest_of(self.target_tokens)),
            "masks": (masks_of(self.tokens), masks_of(self.target_tokens)),
            "global_batch": (str(shape), str(self.placed["global_batch"])),
            "device_batch": (str([str(shape)]), str(self.placed["device_batch"])),
            "placement": (
                f"['{platform}:{self._first_device()}']",
                str(self.placed["devices_of_state"]),
            ),
            "normalisation": (
                f"sum of losses / {count} valid targets",
                f"sum of losses / {self.placed['valid_targets']} valid targets",
            ),
            "recipe": (
                text_of(recipe_of(to_dict(self.model), to_dict(self.train))),
                text_of(self._trained_recipe()),
            ),
            "recipe/told": (
                text_of([to_dict(self.model), to_dict(self.train)]),
                text_of([self.manifest["model"], self.manifest["train"]]),
            ),
            "matmul_precision": ("highest", ", ".join(sorted(precisions))),
        }
        compared = [
            rows.comparison(
                *("5.4", "target_configuration", case, expected, measured),
                "this system",
            )
            for case, (expected, measured) in found.items()
        ]
        if self.manifest["is_release_given"] and self.request["released_sha256"]:
            digest = self.manifest["files"]["parameters.npz"]["sha256"]
            compared.append(
                rows.comparison(
                    *("5.4", "target_configuration", "release"),
                    *(self.request["released_sha256"], digest, "the release"),
                )
            )
        return compared

    def _trained_recipe(self) -> dict[str, Any]:
        """What the training itself says that it was, in its last checkpoint."""
        update = f"update-{TRAINED_UPDATES:06d}"
        path = self.folder / "trained" / "checkpoints" / update / "manifest.json"
        identity = read_json(path)["identity"]
        return recipe_of(identity["architecture"], identity)

    def _first_device(self) -> int:
        local = self.observed["local_devices"]
        return int(local[0]) if local else 0

    def restart(self) -> list[rows.Row]:
        """Claims 5.3 and 5.5: repeated and resumed updates, bit by bit the same."""
        return [*self.trainings.repeated(), *self.trainings.resumed()]

    def answers(self) -> Iterator[tuple[str, dict[str, Any], list[Sign]]]:
        """Yields what the host answered, and its signs; it has one controller."""
        yield "", self.observed, self.found

    def timings(self) -> list[rows.Row]:
        """Rows of `target_timings`, which nobody sees before all else is accepted."""
        path = self.folder / "executed" / "records" / "target_timings.json"
        return list(read_json(path))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an NPZ file by name; nothing in it is executed."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_bytes())


def recipe_of(model: Mapping[str, Any], train: Mapping[str, Any]) -> dict[str, Any]:
    """What both a configuration and a checkpoint say of a training."""
    return {"model": model, **{name: train[name] for name in RECIPE}}


def is_valid(tokens: np.ndarray) -> np.ndarray:
    """Which targets of a token table count."""
    return tokens[:, 1:] != tokenizer.PAD


def masks_of(tokens: Mapping[str, np.ndarray]) -> str:
    """The masks of valid targets of every split, as digests."""
    return digest_of({split: is_valid(table) for split, table in tokens.items()})


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """The arrays of every split, as digests."""
    return " ".join(f"{split}:{array_sha256(arrays[split])[:16]}" for split in SPLITS)


def text_of(value: Any) -> str:
    """A plain value as text that is equal for equal values."""
    return json.dumps(value, sort_keys=True)
