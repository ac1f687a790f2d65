"""Sums and counts that SQL takes from the rows themselves, against stated ones."""

import dataclasses
import random

import numpy as np
import pytest

from warehouse.contract import Claim, read_contract
from warehouse.records.corpus import Document
from warehouse.records.inference import CacheArray, Timing, TraceRegion
from warehouse.records.training import Evaluation, TokenLoss, Update

ROWS = 3000


@pytest.fixture
def losses() -> list[float]:
    """Values whose sum depends on the order in which they are added."""
    draw = random.Random(7)
    return [draw.uniform(0, 1) * 10 ** draw.randint(-9, 3) for _ in range(ROWS)]


def token_losses(losses: list[float]) -> list[TokenLoss]:
    return [
        TokenLoss(
            release_policy="fp32",
            split="heldout",
            # names whose order as text is not the order of the rows
            document_id=f"document-{(number * 7919) % 31}",
            position=number,
            target_token=2,
            loss_nats=loss,
            predicted_token=2,
            is_correct=number % 3 == 0,
        )
        for number, loss in enumerate(losses)
    ]


def evaluation(loss_sum: float, **changes: int) -> Evaluation:
    fields = {
        "update": 300,
        "batch_documents": 16,
        "documents": 31,
        "valid_targets": ROWS,
        "correct_targets": ROWS // 3,
    }
    return Evaluation(
        release_policy="fp32",
        split="heldout",
        loss_sum_nats=loss_sum,
        **{**fields, **changes},
    )


def recounted(connection) -> dict[tuple[str, str], float]:
    found = connection.execute(
        "select measure, case_name, coalesce(value_count, value_real)"
        " from derived_measurements"
    ).fetchall()
    return {(measure, case): value for measure, case, value in found}


def test_the_recounted_sum_is_the_sequential_float64_sum_bit_by_bit(
    made, opened, losses
):
    stated = float(np.cumsum(losses)[-1])
    assert stated != sum(sorted(losses))  # the order matters, so it is really tested
    made.execute("evaluate_heldout", [*token_losses(losses), evaluation(stated)])
    case = "heldout/fp32/batch-16"
    assert recounted(opened()) == {
        ("recounted_loss_sum_difference", case): 0.0,
        ("recounted_valid_target_difference", case): 0,
        ("recounted_correct_target_difference", case): 0,
    }


def test_a_stated_number_that_is_off_by_one_bit_or_one_row_is_found(
    made, opened, losses
):
    stated = float(np.nextafter(np.cumsum(losses)[-1], np.inf))
    made.execute(
        "evaluate_heldout",
        [
            *token_losses(losses),
            evaluation(stated, valid_targets=ROWS + 1, correct_targets=999),
        ],
    )
    case = "heldout/fp32/batch-16"
    found = recounted(opened())
    assert -1e-9 < found["recounted_loss_sum_difference", case] < 0
    assert found["recounted_valid_target_difference", case] == -1
    assert found["recounted_correct_target_difference", case] == 1


def test_rows_are_counted_by_case(made, opened):
    documents = [
        Document(
            document_id=f"d{number}",
            split="train" if number < 3 else "heldout",
            source_group=f"g{number}",
            license="CC0-1.0",
            source="made up",
            sha256=f"{number}",
            document_bytes=5,
            valid_targets=6 if number else 5,
        )
        for number in range(5)
    ]
    arrays = [
        CacheArray(
            cache_policy="int8",
            array_name=name,
            dtype="int8",
            shape="[1]",
            array_bytes=size,
        )
        for name, size in (("keys", 288), ("values", 288), ("scales", 192))
    ]
    timings = [
        Timing(
            endpoint="decode",
            release_policy="fp32",
            process=process,
            process_id=100 + process,
            sample=sample,
            phase="warm" if sample else "first",
            duration_ns=1,
            timer="t",
        )
        for process in (1, 2)
        for sample in range(4)
    ]
    regions = [
        TraceRegion(
            region="text-prefill",
            occurrence=occurrence,
            host_ns=1,
            ready_ns=1,
            operations=1,
            code_file="f",
            code_line=1,
        )
        for occurrence in (0, 1, 1)
    ]
    made.execute("profile_runtime", [*documents, *arrays, *timings, *regions])
    assert recounted(opened()) == {
        ("recounted_documents_not_bytes_plus_one", "train"): 1,
        ("recounted_documents_not_bytes_plus_one", "heldout"): 0,
        ("recounted_cache_bytes", "int8"): 768,
        ("recounted_warm_samples", "decode/fp32/process-1"): 3,
        ("recounted_warm_samples", "decode/fp32/process-2"): 3,
        ("recounted_processes", "decode/fp32"): 2,
        ("recounted_regions", "text-prefill"): 2,
    }


def test_a_recounted_number_is_judged_like_any_other(
    made, opened, claim, requirement, losses
):
    stated = float(np.cumsum(losses)[-1])
    rule = requirement(
        "2.9",
        stage="evaluate_heldout",
        measure="recounted_loss_sum_difference",
        unit="nats",
        cases=("heldout",),
    )
    for offset, verdict in ((0.0, "accept (undrilled)"), (1e-6, "revise")):
        made.execute(
            "evaluate_heldout", [*token_losses(losses), evaluation(stated + offset)]
        )
        made.run(f"run-{verdict[:6]}")
        found = opened(claim(rule)).execute("select verdict from verdicts")
        assert found.fetchall() == [(verdict,)]


SPLIT_TARGETS = {"train": (466, 466), "validation": (150, 150), "heldout": (138, 138)}


def split_documents() -> list[Document]:
    return [
        Document(
            document_id=f"{split}-{number}",
            split=split,
            source_group=f"{split}-{number}",
            license="CC0-1.0",
            source="made up",
            sha256=f"{split}-{number}",
            document_bytes=targets - 1,
            valid_targets=targets,
        )
        for split, sizes in SPLIT_TARGETS.items()
        for number, targets in enumerate(sizes)
    ]


def epoch_updates(*targets: tuple[int, ...]) -> list[Update]:
    """Updates of one epoch after another, with the valid targets of each."""
    flat = [(epoch, count) for epoch, counts in enumerate(targets) for count in counts]
    return [
        Update(
            run_label="uninterrupted",
            update=number,
            epoch=epoch,
            cursor=0,
            loss_nats=1.0,
            valid_targets=count,
            cumulative_valid_targets=number,
            learning_rate=1.0,
            duration_ns=1,
        )
        for number, (epoch, count) in enumerate(flat, start=1)
    ]


@pytest.mark.parametrize(
    ("targets", "apart"),
    [
        (((400, 532), (532, 400)), 0),
        (((400, 532), (532, 400), (500,)), 0),
        (((576, 576), (576, 576)), 2),
        (((400, 532), (532, 401), (500,)), 1),
        (((400, 532), (532, 399)), 1),
    ],
)
def test_an_epoch_of_other_targets_than_its_documents_is_counted(
    made, opened, targets: tuple[tuple[int, ...], ...], apart: int
):
    """932 valid targets; 1152 are those of 96 documents with their PAD.

    The last epoch counts only where it is as long as the one before.
    """
    made.execute("tokenize_corpus", split_documents())
    made.execute("train_model", epoch_updates(*targets))
    made.run("run-1")
    found = recounted(opened())
    assert found["recounted_epochs_of_other_targets", ""] == apart


def test_a_training_that_counts_pad_is_to_be_revised(made, opened):
    """By the contract itself, in the first whole epoch already."""
    rule = contract_rule("train_model", "recounted_epochs_of_other_targets")
    made.execute("tokenize_corpus", split_documents())
    for targets, verdict in (
        (((400, 532), (532, 400)), "accept (undrilled)"),
        (((576, 576), (532, 400)), "revise"),
    ):
        made.execute("train_model", epoch_updates(*targets))
        made.run(f"run-{verdict[:6]}")
        found = opened(rule).execute("select verdict from verdicts")
        assert found.fetchall() == [(verdict,)]


def test_without_a_corpus_or_a_whole_epoch_nothing_is_said_of_epochs(made, opened):
    made.execute("train_model", epoch_updates((400, 532), (532, 400)))
    made.run("run-1")
    measure = ("recounted_epochs_of_other_targets", "")
    assert measure not in recounted(opened())
    made.execute("tokenize_corpus", split_documents())
    made.execute("train_model", epoch_updates((400, 532)))
    made.run("run-2")
    assert measure not in recounted(opened())


def contract_rule(stage: str, measure: str) -> Claim:
    """Claim 2.9 with the one requirement of the contract that asks for a measure."""
    listed = next(claim for claim in read_contract() if claim.id == "2.9")
    asked = tuple(
        item
        for item in listed.requirements
        if (item.stage, item.measure) == (stage, measure)
    )
    assert len(asked) == 1
    return dataclasses.replace(listed, requirements=asked)


def curve(split: str, *points: tuple[int, int]) -> list[Evaluation]:
    """Evaluations of a split after updates 0, 1, ..., of documents and targets."""
    return [
        Evaluation(
            release_policy="fp32",
            split=split,
            update=update,
            batch_documents=2,
            documents=documents,
            loss_sum_nats=1.0,
            valid_targets=targets,
            correct_targets=0,
        )
        for update, (documents, targets) in enumerate(points)
    ]


@pytest.mark.parametrize(
    ("stage", "split", "points", "apart"),
    [
        ("train_model", "validation", [(2, 300)] * 3, 0),
        ("train_model", "validation", [(2, 276)] * 3, 3),
        ("train_model", "validation", [(2, 300), (1, 300), (2, 300)], 1),
        ("evaluate_heldout", "heldout", [(2, 276)], 0),
        ("evaluate_heldout", "heldout", [(2, 300)], 1),
        ("evaluate_heldout", "heldout", [(2, 384)], 1),
    ],
)
def test_an_evaluation_of_another_split_is_to_be_revised(
    made, opened, stage: str, split: str, points: list[tuple[int, int]], apart: int
):
    """Validation has 300 targets and held-out 276, as many documents; PAD adds more."""
    measure = "recounted_evaluations_of_other_targets"
    made.execute("tokenize_corpus", split_documents())
    made.execute(stage, curve(split, *points))
    made.run("run-1")
    connection = opened(contract_rule(stage, measure))
    assert recounted(connection)[measure, split] == apart
    found = connection.execute("select verdict from verdicts").fetchall()
    assert found == [("revise" if apart else "accept (undrilled)",)]
