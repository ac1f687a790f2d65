"""The rows that a result of a slice gives: those of one host, for every controller.

How many controllers there have to be is what the accelerator has, and what each had to
answer follows from what the launcher drew; neither is read from the result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from model.checks import rows
from model.checks.slice_configuration import Configured
from model.checks.slice_files import SliceFiles
from model.checks.target_reference import Reference
from model.checks.target_result import read_arrays, text_of
from model.checks.target_rows import (
    about,
    challenge_rows,
    endpoint_rows,
    sign_counts,
    trained_row,
    training_rows,
    workload_rows,
)
from model.config import ModelConfig, TrainConfig, from_dict, to_dict
from model.digests import tree_sha256
from model.target_result import (
    GANGS,
    KILLED_CODE,
    RESTORED_UPDATE,
    SLICE_TRAININGS,
    TRAINED_UPDATES,
    UNCOMMITTED_UPDATE,
    nonce_of,
    part,
)
from model.target_signs import Sign
from model.update_programs import PROGRAMS

TRAINED, RESTARTED = GANGS
RESUMED = "resumed same"
"""Label of the training that goes on from the commit; its program is the split one."""
SPLIT = SLICE_TRAININGS[0]
FIRST = "the first training, on controller 0"


class SliceJudge:
    """The result of all controllers of a slice beside the reference."""

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        request: Mapping[str, Any],
        reference: Reference | None = None,
    ) -> None:
        """Reads what each controller answered.

        Args:
            folder: The result.
            manifest: Its manifest.
            request: What `model.programs.judge_target` takes.
            reference: What it is held against; None computes it here.
        """
        self.files = SliceFiles(folder, int(request["accelerator"]["hosts"]))
        self.count = self.files.count
        self.folder = folder
        self.manifest = manifest
        self.request = request
        self.model = from_dict(ModelConfig, request["model"])
        self.train = from_dict(TrainConfig, request["train"])
        self.reference = reference or Reference(
            self.model, self.train, PROGRAMS["whole"](self.model, self.train)
        )

    def answers(self) -> Iterator[tuple[str, dict[str, Any], list[Sign]]]:
        """Yields the gang, what a controller of it answered, and its signs."""
        for (gang, number), observed in self.files.observed.items():
            yield gang, observed, self.files.found[gang, number]

    def timings(self) -> list[rows.Row]:
        """Rows of `target_timings`, which nobody sees before all else is accepted."""
        return [
            row
            for number in range(self.count)
            for row in self.files.json(RESTARTED, number, "artifacts/timings.json", [])
        ]

    def signs(self) -> list[rows.Row]:
        """Claim 5.1: every sign of every controller, and what its devices ran."""
        found = []
        for (gang, number), signs in self.files.found.items():
            found += sign_counts(signs, f"{gang}/controller-{number}")
        for number in range(self.count):
            trace = self.files.json(RESTARTED, number, "artifacts/trace.json")
            observed = self.files.observed.get((RESTARTED, number), {})
            found += workload_rows(observed, trace, f"controller-{number}")
        return found

    def challenge(self) -> list[rows.Row]:
        """Claim 5.2: each answered what it alone was asked, in this execution."""
        asked = self.request
        found = {
            "result_nonce": (asked["nonce"], self.manifest["nonce"]),
            "result_code": (asked["code_sha256"], self.manifest["code_sha256"]),
        }
        for gang, number in self.files.places():
            answered = self.files.observed.get((gang, number), {})
            at = f"{gang}/controller-{number}"
            expected = nonce_of(asked["nonce"], gang, number) if asked["nonce"] else ""
            found[f"nonce/{at}"] = (expected, answered.get("nonce", ""))
            code = answered.get("code_sha256", "")
            found[f"code/{at}"] = (asked["code_sha256"], code)
        return challenge_rows(found)

    def numbers(self) -> list[rows.Row]:
        """Claims 5.2, 5.3, 5.5: who is silent, how far all are from the reference."""
        found = [*self.silences(), self._devices_trained()]
        for label in SLICE_TRAININGS:
            found += self._training_numbers(label)
        expected = self.reference.logits(self.folder / "parameters.npz")
        for number in range(self.count):
            path = self.folder / part(TRAINED, number) / "artifacts" / "logits.npz"
            measured = read_arrays(path) if path.is_file() else {}
            found += endpoint_rows(expected, measured, f"controller-{number}")
        return [*found, *self.choices()]

    def silences(self) -> list[rows.Row]:
        """Claim 5.2: how many controllers of an accelerator did not answer, and why."""
        silent = self._silent()
        why = "; ".join(f"controller {n}: {told}" for n, told in silent.items())
        return [
            rows.count(
                *("5.2", "controllers_silent", "", len(silent), "controllers"), why
            )
        ]

    def configuration(self) -> list[rows.Row]:
        """Claim 5.4: what every controller computed is what was declared."""
        is_given = self.manifest["is_release_given"]
        released = self.request["released_sha256"] if is_given else ""
        tokens = self.reference.tokens
        own = Configured(self.files, self.model, self.train, tokens, released)
        told = rows.comparison(
            *("5.4", "target_configuration", "recipe/told"),
            text_of([to_dict(self.model), to_dict(self.train)]),
            text_of([self.manifest["model"], self.manifest["train"]]),
            "this system",
        )
        return [*own.compared(), told]

    def restart(self) -> list[rows.Row]:
        """Claims 5.3 and 5.5: every controller repeats and resumes the same bits."""
        found: list[rows.Row] = []
        for label in SLICE_TRAININGS:
            for gang, name in ((TRAINED, label), (RESTARTED, f"repeated {label}")):
                owed = {u: self._state(label, u) for u in range(1, TRAINED_UPDATES + 1)}
                case = f"{label}/{gang}"
                found += self._same("5.3", "repeated_updates", case, owed, gang, name)
        late = range(RESTORED_UPDATE + 1, TRAINED_UPDATES + 1)
        owed = {update: self._state(SPLIT, update) for update in late}
        found += self._same("5.5", "resumed_updates", "", owed, RESTARTED, RESUMED)
        return [*found, *self._ends()]

    # --- parts ---

    def _devices_trained(self) -> rows.Row:
        """Claim 5.2: the devices that the batch was laid out over, on every controller.

        That they are the accelerator's is counted from what each host observed.
        """
        answers = [
            self.files.json(TRAINED, number, "artifacts/answer.json")
            for number in range(self.count)
        ]
        laid_out = [
            len(json.loads(row["device_documents"]))
            for number in range(self.count)
            for label in SLICE_TRAININGS
            for row in self.files.rows(TRAINED, number, "controller_updates", label)
        ]
        devices = sum(int(each.get("local_device_count", 1)) for each in answers)
        return trained_row(min(laid_out, default=0), devices)

    def _state(self, label: str, update: int) -> str:
        """Returns what the first training held on controller 0 after an update."""
        return self.files.states(TRAINED, 0, label).get(update, "")

    def _same(
        self,
        claim: str,
        measure: str,
        case: str,
        owed: Mapping[int, str],
        gang: str,
        label: str,
    ) -> Iterator[rows.Row]:
        """Yields a comparison for each update that is owed and each controller."""
        for number in range(self.count):
            made = self.files.states(gang, number, label)
            for update, expected in owed.items():
                name = about(case, f"update-{update:02d}/controller-{number}")
                # An update that nobody made is no update that was repeated.
                measured = made.get(update, "none")
                yield rows.comparison(claim, measure, name, expected, measured, FIRST)

    def _silent(self) -> dict[int, str]:
        """Returns why a controller counts as one that did not answer, by its number."""
        seen = Counter(self.files.process(*place) for place in self.files.observed)
        found: dict[int, str] = {}
        for gang, number in self.files.places():
            why = self._why_silent(gang, number, seen)
            if why:
                found.setdefault(number, f"{gang}: {why}")
        return found

    def _why_silent(self, gang: str, number: int, seen: Counter[Any]) -> str:
        observed = self.files.observed.get((gang, number))
        answer = self.files.json(gang, number, "artifacts/answer.json")
        if observed is None or not answer:
            return "no answer"
        asked = self.request["nonce"]
        nonce = nonce_of(asked, gang, number) if asked else observed["nonce"]
        if (observed["nonce"], answer["nonce"]) != (nonce, nonce):
            return "another nonce"
        places = {
            (each["process_index"], each["process_count"])
            for each in (observed, answer)
        }
        if places != {(number, self.count)}:
            return f"another place, {sorted(places)}"
        if (
            seen[self.files.process(gang, number)] > 1
            or answer["host"] != observed["host"]
        ):
            return "the process of another one"
        found = {
            "code_sha256": observed["code_sha256"],
            "platform": observed["default_backend"],
            "global_device_count": len(observed["devices"]),
        }
        told = {name: answer.get(name) for name in found}
        if told != found:
            return f"it trained as another than was probed, {told}"
        made = self.files.json(gang, number, "records/controller_updates.json", [])
        if not made or {row["nonce"] for row in made} != {nonce}:
            return "updates that it did not answer for"
        return ""

    def _training_numbers(self, label: str) -> list[rows.Row]:
        """Claim 5.3: losses of all, parameters of the controller that kept them."""
        expected = self.reference.updates
        measured = []
        for update in range(1, len(expected) + 1):
            told = [
                row
                for number in range(self.count)
                for row in self.files.rows(TRAINED, number, "controller_updates", label)
                if row["update"] == update
            ]
            own = expected[update - 1].outcome
            measured.append(_furthest(told, int(own.valid_targets), float(own.loss)))
        parameters = self._parameters(label)
        return training_rows(expected, measured, parameters, self.model, label)

    def _parameters(self, label: str) -> dict[str, np.ndarray]:
        """Returns what controller 0 kept, where it is what its last update held."""
        file = self.folder / part(TRAINED, 0) / "artifacts" / f"state-{label}.npz"
        arrays = read_arrays(file) if file.is_file() else {}
        last = self.files.states(TRAINED, 0, label).get(TRAINED_UPDATES)
        is_last = bool(arrays) and tree_sha256(arrays) == last
        prefix = "parameters/"
        if is_last:
            return {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
        # of no shape that a parameter has: infinitely far from all of them
        names = self.reference.updates[-1].state.parameters
        return {name: np.empty((0, 0, 0)) for name in names}

    def choices(self) -> list[rows.Row]:
        """Claim 5.5: nobody chose what nobody committed, although it lay there."""
        written = self.manifest["written"]
        newest = f"update-{UNCOMMITTED_UPDATE:06d}"
        if written.get(newest) is not False:
            return []  # nothing uncommitted lay there: nothing was shown
        restored = self.files.restored()
        chosen = [
            number
            for number, update in restored.items()
            if update >= 0 and not written.get(f"update-{update:06d}")
        ]
        return [
            rows.count(
                *("5.5", "uncommitted_checkpoints_chosen", ""),
                *(len(chosen), "checkpoints"),
                f"{json.dumps(restored)} were restored; {newest} had no commit",
            )
        ]

    def _ends(self) -> list[rows.Row]:
        """Claim 5.5: one was killed, and all went on from the commit as others."""
        last = self.count - 1
        end = self.files.json(TRAINED, last, "end.json")
        processes = {self.files.process(*place) for place in self.files.observed}
        compared = {
            f"end_of_the_killed/controller-{last}": (
                str(KILLED_CODE),
                str(end.get("return_code", "none")),
            ),
            "processes": (str(2 * self.count), str(len(processes))),
        }
        for number in range(self.count):
            end = self.files.json(RESTARTED, number, "end.json")
            name = f"end_of_the_restarted/controller-{number}"
            compared[name] = ("0", str(end.get("return_code", "none")))
        for number, update in self.files.restored().items():
            name = f"restored_update/controller-{number}"
            compared[name] = (str(RESTORED_UPDATE), str(update))
        return [
            rows.comparison(
                *("5.5", "restart_of_a_killed_process", case, expected, measured),
                "the last commit, by processes of their own",
            )
            for case, (expected, measured) in compared.items()
        ]


def _furthest(told: list[rows.Row], targets: int, loss: float) -> rows.Row:
    """Returns of what controllers told of one update what is furthest from it."""
    if not told:
        return {"valid_targets": 0, "loss_nats": float("nan")}
    means = [row["loss_sum_nats"] / row["valid_targets"] for row in told]
    counts = [row["valid_targets"] for row in told]
    return {
        "valid_targets": max(counts, key=lambda each: abs(each - targets)),
        "loss_nats": max(means, key=lambda each: abs(each - loss)),
    }
