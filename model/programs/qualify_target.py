"""One script that qualifies a one-controller target, and leaves a folder to carry home.

    python -m model.programs.qualify_target OUT --expect-platform gpu

It needs this package, JAX for the target, NumPy and flatbuffers, and takes minutes.
Every step is a process of its own, because one process may hold the devices, and one
of them is killed. Nothing is judged here but whether the target is there: verdicts are
made at home, from the folder, with the limits that stand in the contract.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from model.checkpoint_manifest import MARK
from model.config import fixture_manifest, to_dict
from model.folders import source_sha256
from model.presets import preset
from model.refusal import Refused
from model.target_result import (
    CHECKPOINT_EVERY_UPDATES,
    KILLED_AFTER_UPDATE,
    RESTORED_UPDATE,
    STEPS,
    TRAINED_UPDATES,
    UNCOMMITTED_UPDATE,
    write_manifest,
)

ROOT = Path(__file__).resolve().parents[2]
STARTS_AS = {"tpu": "tpu", "gpu": "cuda", "cpu": "cpu"}
REFUSED, FAILED = 2, 1
DEADLINE_SECONDS = 240
# Sums by atomic additions have another order every time.
GPU_FLAGS = "--xla_gpu_deterministic_ops=true"


class StepFailed(Exception):
    """A step did not end as it has to."""


def main(arguments: Sequence[str]) -> int:
    """Runs the steps in order, stops at the first that fails, and writes the manifest.

    Returns:
        0 when all was done, 2 where the target is not there, 1 for any other failure.
    """
    asked = _parsed(arguments)
    out: Path = asked.out
    if out.exists() and any(out.iterdir()):
        sys.stderr.write(f"{str(out)!r} is not empty; name a folder to be made.\n")
        return REFUSED
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="target-cache-") as cache:
        target = Target(asked, out, Path(cache))
        code = FAILED
        try:
            for step in STEPS:
                sys.stderr.write(f"{step} ...\n")
                target.stopped_at = step
                getattr(target, step)()
            target.stopped_at, code = "", 0
        except StepFailed as failed:
            target.stopped_because = str(failed)
            sys.stderr.write(f"Stopped at {target.stopped_at}: {failed}\n")
            code = REFUSED if target.stopped_at == "probe" else FAILED
        write_manifest(out, target.described())
    sys.stderr.write(
        f"{'Done' if code == 0 else 'Not done'}: carry {str(out)!r} home; there, "
        "`harness target import` makes the verdicts.\n"
    )
    return code


class Target:
    """The run on one target: its steps, and what is known about each."""

    def __init__(self, asked: argparse.Namespace, out: Path, cache: Path) -> None:
        self.asked = asked
        self.out = out
        self.cache = cache
        self.config = preset(asked.preset)
        self.steps: dict[str, dict[str, Any]] = {}
        self.stopped_at = ""
        self.stopped_because = ""
        self.flags = ""

    def described(self) -> dict[str, Any]:
        """What the manifest says beside the files."""
        return {
            "platform": self.asked.expect_platform,
            "accelerator": self.asked.accelerator,
            "is_synthetic": False,
            "is_rehearsal": self.asked.expect_platform == "cpu",
            "nonce": self.asked.nonce,
            "code_sha256_demanded": self.asked.code_sha256,
            "code_sha256": source_sha256(ROOT / "model"),
            "preset": self.asked.preset,
            "model": to_dict(self.config.model),
            "train": to_dict(self.config.train),
            "is_release_given": self.asked.parameters is not None,
            "steps": self.steps,
            "stopped_at": self.stopped_at,
            "stopped_because": self.stopped_because,
        }

    def probe(self) -> None:
        """Asks for every sign of the target; a rehearsal asks too, and goes on."""
        is_rehearsal = self.asked.expect_platform == "cpu"
        expected = "gpu" if is_rehearsal else self.asked.expect_platform
        if expected == "gpu" and not is_rehearsal and self._takes(GPU_FLAGS):
            self.flags = GPU_FLAGS
        target = {"platform": expected, "accelerator": self.asked.accelerator}
        demanded = {
            "nonce": self.asked.nonce,
            "code_sha256": self.asked.code_sha256,
            "target": target,
        }
        codes = (0, REFUSED) if is_rehearsal else (0,)
        self._run("probe", "probe_target", demanded, codes=codes)

    def tokens(self) -> None:
        """Makes the tokens from the corpus that lies in this package."""
        self._run(
            "tokens",
            "tokenize_corpus",
            {
                "manifest": str(fixture_manifest()),
                "model": to_dict(self.config.model),
            },
            environment={"JAX_PLATFORMS": "cpu"},
        )

    def endpoints(self) -> None:
        """Runs the endpoints of the release, or of what a training begins with."""
        if self.asked.parameters is not None:
            shutil.copyfile(self.asked.parameters, self.out / "parameters.npz")
        self._run("endpoints", "run_endpoints", self._release())

    def trained(self) -> None:
        """Trains from the seeds."""
        self._train("trained")

    def repeated(self) -> None:
        """Trains again in another process: on one target every bit has to agree."""
        self._train("repeated")

    def killed(self) -> None:
        """Trains until it is killed by SIGKILL between two commits."""
        self._train(
            "killed",
            {"pause_after_update": KILLED_AFTER_UPDATE},
            kill_at="paused",
            codes=(-9,),
        )
        # what a kill in the middle of a write would leave: arrays and no commit
        folder = self.out / "killed" / "checkpoints"
        committed = folder / f"update-{RESTORED_UPDATE:06d}"
        planted = folder / f"update-{UNCOMMITTED_UPDATE:06d}"
        if (committed / MARK).is_file() and not planted.exists():
            shutil.copytree(committed, planted)
            (planted / MARK).unlink()

    def resumed(self) -> None:
        """Goes on in another process from the last commit."""
        folder = str(self.out / "killed" / "checkpoints")
        self._train("resumed", {"restore_folder": folder})

    def executed(self) -> None:
        """Runs the release: placement, trace, and last its times."""
        profile = {"profile": to_dict(self.config.profile)}
        self._run("executed", "run_target", {**self._release(), **profile})

    def _release(self) -> dict[str, Any]:
        return {
            "model": to_dict(self.config.model),
            "train": to_dict(self.config.train),
            "lowered_for": STARTS_AS[self.asked.expect_platform],
            "parameters": str(self.out / "parameters.npz"),
            "tokens": str(self.out / "tokens" / "artifacts" / "tokens.npz"),
        }

    def _train(
        self,
        step: str,
        changes: Mapping[str, Any] | None = None,
        *,
        kill_at: str = "",
        codes: tuple[int, ...] = (0,),
    ) -> None:
        made = self.out / "tokens" / "artifacts"
        request = {
            "label": step,
            "model": to_dict(self.config.model),
            "train": to_dict(self.config.train),
            "tokens": str(made / "tokens.npz"),
            "corpus": str(made / "corpus.json"),
            "evaluate": False,
            "stop_after_update": TRAINED_UPDATES,
            "checkpoint_folder": str(self.out / step / "checkpoints"),
            "checkpoint_every_updates": CHECKPOINT_EVERY_UPDATES,
            **(changes or {}),
        }
        self._run(step, "train_model", request, kill_at=kill_at, codes=codes)

    def _run(
        self,
        step: str,
        program: str,
        request: Mapping[str, Any],
        *,
        kill_at: str = "",
        codes: tuple[int, ...] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Runs one program to its end, or to the kill that it is about."""
        folder = self.out / step
        folder.mkdir()
        file = folder / "request.json"
        file.write_text(json.dumps({**request, "out": str(folder)}), "utf-8")
        variables = {**self._environment(), **(environment or {})}
        started = time.monotonic_ns()
        with (folder / "stderr.txt").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", f"model.programs.{program}", str(file)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if kill_at else subprocess.DEVNULL,
                stderr=errors,
                text=True,
            )
            code = _ended(process, kill_at)
        self.steps[step] = {
            "program": program,
            "process_id": process.pid,
            "return_code": code,
            "duration_ns": time.monotonic_ns() - started,
            "jax_platforms": variables["JAX_PLATFORMS"],
            "xla_flags": variables.get("XLA_FLAGS", ""),
            "matmul_precision": variables["JAX_DEFAULT_MATMUL_PRECISION"],
        }
        if code not in codes:
            told = (folder / "stderr.txt").read_text("utf-8", "replace").strip()
            raise StepFailed(
                f"{program} ended with {code}: "
                f"{told.splitlines()[-1] if told else 'it said nothing'}"
            )

    def _environment(self) -> dict[str, str]:
        flags = " ".join([os.environ.get("XLA_FLAGS", ""), self.flags]).split()
        return {
            **os.environ,
            "JAX_PLATFORMS": STARTS_AS[self.asked.expect_platform],
            "JAX_DEFAULT_MATMUL_PRECISION": "highest",
            "JAX_NUMPY_DTYPE_PROMOTION": "strict",
            "JAX_NUMPY_RANK_PROMOTION": "raise",
            "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
            "JAX_COMPILATION_CACHE_DIR": str(self.cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "XLA_FLAGS": " ".join(flags),
            "NPROC": os.environ.get("NPROC", "2"),
            "PYTHONPATH": str(ROOT),
            "PYTHONSAFEPATH": "1",
        }

    def _takes(self, flags: str) -> bool:
        """Whether this XLA knows a flag; it ends a process for one that it does not."""
        done = subprocess.run(
            [sys.executable, "-c", "import jax; jax.devices('cpu')"],
            env={**self._environment(), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        return done.returncode == 0


KILLED_BY_DEADLINE = -1000


def _ended(process: subprocess.Popen[str], kill_at: str) -> int:
    """Returns how a program ended; it is killed at an event, or when it is late.

    However this is left, by a signal too, no program is: it holds the devices.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(DEADLINE_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        for line in process.stdout or ():
            if json.loads(line).get("event") == kill_at:
                process.kill()
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    return KILLED_BY_DEADLINE if late.is_set() else code


def _told_to_end(*_: Any) -> None:
    raise StepFailed("it was told to end by SIGTERM")


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m model.programs.qualify_target",
        description="Qualifies a one-controller target; leaves a folder to carry home.",
    )
    parser.add_argument("out", type=Path, help="folder to be made")
    parser.add_argument(
        "--expect-platform",
        required=True,
        choices=sorted(STARTS_AS),
        help="platform that has to be there; cpu rehearses and demonstrates nothing",
    )
    parser.add_argument("--accelerator", default="", help="what it is sold as")
    parser.add_argument("--nonce", default="", help="number of this occasion")
    parser.add_argument("--code-sha256", default="", help="digest that is demanded")
    parser.add_argument(
        "--parameters", type=Path, help="parameters.npz of the release to qualify"
    )
    parser.add_argument("--preset", default="fixture", help="what is trained")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _told_to_end)
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as refused:
        sys.stderr.write(f"{refused.message}\n")
        sys.exit(REFUSED)
