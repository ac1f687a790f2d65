"""A small training to certify, and what a certificate of it starts from.

The whole certificates are `harness certify`; the tests make them at few points.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from flows.proofs import Proof
from model.config import RunConfig, fixture_manifest
from model.presets import fixture
from tasks.compared_trainings import compare_trainings
from tasks.corpus_files import corpus_files
from tasks.killed_training import kill_training, training_request
from tasks.resumed_training import Resumption, resume_trainings, trace_of
from tasks.tokenize_corpus import tokenize_corpus
from tasks.train_model import train_model
from tasks.work import Work
from tests.tasks.stage_maker import StageMaker

Plant = Callable[[str, str, str], None]
"""Plants a defect into a module of the model: the right text, and the wrong one."""


def small() -> RunConfig:
    """The fixture with ten updates, two points and a chain of two kills."""
    config = fixture()
    train = replace(config.train, updates=10, overfit_updates=2, traced_updates=10)
    certify = replace(config.certify, points=(0, 5), chain=(1, 3), final_update=10)
    return replace(config, train=train, certify=certify)


class Certified(StageMaker):
    """A tokenized corpus and a training, and what a certificate starts from."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.config = small()
        model = self.config.model
        self.tokens = self.execute(
            tokenize_corpus,
            manifest_path=str(fixture_manifest()),
            manifest_sha256=corpus_files(None).sha256,
            model=model,
        )
        self.trained = self.execute(
            train_model, tokens=self.tokens, model=model, train=self.config.train
        )

    def trace(self, work: Work) -> str:
        """Returns where the trace of the training lies, for a program to read."""
        return work.fetch(self.trained, "trace.jsonl")["trace.jsonl"]

    def prove(self, proof: Proof) -> list:
        """Makes a proof about the training, and returns its rows."""
        work = self.work(proof.stage, proof.stage.definition.name)
        config = self.config
        settings = proof.settings(config)
        proof.stage.body(
            work, self.tokens, self.trained, config.model, config.train, settings
        )
        return work.records


def killed_and_restored(
    work: Work, certified: Certified, cadence: int, point: int
) -> list:
    """Kills one training, restores it and compares; returns the rows."""
    config = certified.config
    request = training_request(work, certified.tokens, config.model, config.train)
    request["stop_after_update"] = point + 1
    beside = request | {"compared_trace": certified.trace(work)}
    folder = work.scratch("killed")
    killed = kill_training(
        work,
        beside,
        claim="2.2",
        case="point",
        point=point,
        cadence=cadence,
        folder=folder,
    )
    resumption = Resumption(
        case="point",
        folder=folder,
        committed_update=killed.committed_update,
        point=point,
    )
    run = resume_trainings(work, beside, [resumption], label="resumed")
    compared = resumption.compared(
        run,
        trace_of(run, "point"),
        role="certified",
        claim="2.2",
        last_update=point + 1,
    )
    trainings = [killed.compared("2.2"), compared]
    compare_trainings(work, request, certified.trace(work), trainings)
    return work.records
