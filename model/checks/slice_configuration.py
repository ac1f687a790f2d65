"""Claim 5.4 of a slice: what every controller computed is what was declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from model import tokenizer
from model.checks import controllers, rows
from model.checks.slice_files import SliceFiles
from model.checks.target_result import (
    digest_of,
    masks_of,
    read_arrays,
    read_json,
    recipe_of,
    text_of,
)
from model.config import ModelConfig, TrainConfig, to_dict
from model.corpus import load_corpus
from model.target_result import GANGS, SLICE_TRAININGS, TRAINED_UPDATES

TRAINED, RESTARTED = GANGS
_NOTHING: dict[str, str] = dict.fromkeys(
    ("tokenizer", "split_sha256", "tokens_sha256", "normalisation"), "none"
)


class Configured:
    """What a slice was told to compute, and the files that say what it did."""

    def __init__(
        self,
        files: SliceFiles,
        model: ModelConfig,
        train: TrainConfig,
        tokens: Mapping[str, Any],
        released_sha256: str,
    ) -> None:
        """Reads nothing yet.

        Args:
            files: What the controllers left.
            model: Shape of the model.
            train: Recipe and seeds.
            tokens: Tokens by split, made on this machine.
            released_sha256: Digest of the released parameters; empty where the slice
                was given none, or none is known.
        """
        self.files = files
        self.model = model
        self.train = train
        self.tokens = tokens
        self.released_sha256 = released_sha256

    def compared(self) -> list[rows.Row]:
        """Returns a comparison for each part of it, and for each controller."""
        found = [*self._of_trainings()]
        described = read_json(self.files.folder / "corpus.json")
        identity = read_json(self.files.folder / "checkpoint.json")["identity"]
        expected = recipe_of(to_dict(self.model), to_dict(self.train))
        # keys of controllers belong to documents, and a checkpoint says so
        expected["dropout_seed"] = f"{self.train.dropout_seed} by document"
        tokens = read_arrays(self.files.folder / "tokens.npz")
        own = self.tokens
        compared = {
            "tokenizer/corpus": (
                text_of(tokenizer.describe()),
                text_of(described["tokenizer"]),
            ),
            "data/corpus": (digest_of(own), digest_of(tokens)),
            "masks/corpus": (masks_of(own), masks_of(tokens)),
            "recipe": (
                text_of(expected),
                text_of(recipe_of(identity["architecture"], identity)),
            ),
        }
        for gang, number in self.files.places():
            observed = self.files.observed.get((gang, number), {})
            at = f"matmul_precision/{gang}/controller-{number}"
            compared[at] = ("highest", observed.get("matmul_precision", "none"))
        for number in range(self.files.count):
            compared |= self._of_workload(number)
        found += [
            rows.comparison(
                *("5.4", "target_configuration", case, expected, measured),
                "this system",
            )
            for case, (expected, measured) in compared.items()
        ]
        return found

    def _of_trainings(self) -> Iterator[rows.Row]:
        folder = self.files.folder
        declared = controllers.Declared(
            model=self.model,
            train=self.train,
            corpus=load_corpus(
                folder / "tokens.npz", folder / "corpus.json", self.model
            ),
            last_update=TRAINED_UPDATES,
        )
        answers = [
            self.files.json(TRAINED, number, "artifacts/answer.json")
            for number in range(self.files.count)
        ]
        devices = sum(each.get("local_device_count", 0) for each in answers)
        for label in SLICE_TRAININGS:
            told = self._of_each("controller_trainings", label)
            trained = controllers.Trained(
                program=label,
                updates=self._of_each("controller_updates", label),
                trainings=[each[0] if each else _NOTHING for each in told],
                arrays=self._of_each("controller_arrays", label),
                devices=max(1, devices),
            )
            for row in controllers.configuration(label, declared, trained):
                case = row["case_name"].replace("documents/", "global_batch/documents/")
                named = {"claim": "5.4", "measure": "target_configuration"}
                yield row | named | {"case_name": case}

    def _of_each(self, table: str, label: str) -> list[list[rows.Row]]:
        """Returns what each controller of the first gang wrote about a training."""
        numbers = range(self.files.count)
        return [self.files.rows(TRAINED, each, table, label) for each in numbers]

    def _of_workload(self, number: int) -> dict[str, tuple[str, str]]:
        """What one controller says of the batch, the place and the release it ran."""
        placed = self.files.json(RESTARTED, number, "artifacts/placement.json")
        agreed = self.files.json(RESTARTED, number, "artifacts/agreed.json")
        observed = self.files.observed.get((RESTARTED, number), {})
        local = observed.get("local_devices") or [0]
        shape = [self.train.batch_documents, self.model.context_tokens + 1]
        platform = observed.get("platform", "none")
        at = f"controller-{number}"
        found = {
            f"placement/workload/{at}": (
                f"['{platform}:{local[0]}']",
                str(placed.get("devices_of_state", "none")),
            ),
            f"global_batch/workload/{at}": (
                str(shape),
                str(placed.get("global_batch", "none")),
            ),
            f"device_batch/workload/{at}": (
                str([str(shape)]),
                str(placed.get("device_batch", "none")),
            ),
        }
        if self.released_sha256:
            read = agreed.get("about", {}).get("parameters", "none")
            found[f"release/{at}"] = (self.released_sha256, read)
        return found
