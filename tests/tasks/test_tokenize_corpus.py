"""The first stage records every row its claims ask for, through the real runner."""

import os
from pathlib import Path

import pytest

from model.config import ModelConfig
from tasks.corpus_files import corpus_files
from tasks.errors import InputChanged
from tasks.tokenize_corpus import tokenize_corpus
from tasks.work import Work
from warehouse.contract import read_contract
from warehouse.records.claims import Comparison, Measurement, Refusal
from warehouse.records.corpus import Document, Split
from warehouse.store import Store

CLAIMS = ("1.1", "1.2", "1.3", "1.4", "1.5", "1.6")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    folder = tmp_path_factory.mktemp("tokenize-stage")
    made = Work(tokenize_corpus.definition, Store(folder / "evidence"), {}, folder)
    corpus = corpus_files(None)
    tokenize_corpus.body(made, corpus.path, corpus.sha256, ModelConfig())
    return made


def test_a_corpus_that_changed_after_it_was_named_is_not_kept(tmp_path: Path) -> None:
    made = Work(tokenize_corpus.definition, Store(tmp_path / "evidence"), {}, tmp_path)
    with pytest.raises(InputChanged, match="was changed while it was read"):
        tokenize_corpus.body(made, corpus_files(None).path, "0" * 64, ModelConfig())


def test_the_stage_keeps_the_tokens_and_what_later_stages_must_know(work: Work) -> None:
    assert set(work.kept) == {"tokens.npz", "corpus.json"}
    assert sum(isinstance(row, Document) for row in work.records) == 160
    assert sum(isinstance(row, Split) for row in work.records) == 3


def test_every_requirement_of_claims_1_1_to_1_6_has_rows_for_every_case(
    work: Work,
) -> None:
    """A misspelled measure would read as not demonstrated; here it is named."""
    judged = (Measurement, Comparison, Refusal)
    rows = [row for row in work.records if isinstance(row, judged)]
    measured = {(row.claim, row.measure) for row in rows}
    missing = []
    required = [claim for claim in read_contract() if claim.id in CLAIMS]
    for claim in required:
        for requirement in claim.requirements:
            # What SQL recounts is not among the rows of the stage.
            is_derived = requirement.measure.startswith("recounted_")
            if requirement.stage != "tokenize_corpus" or is_derived:
                continue
            here = [
                row.case_name
                for row in rows
                if (row.claim, row.measure) == (claim.id, requirement.measure)
            ]
            for case in requirement.cases or ("",):
                if not any(
                    name == case or name.startswith(f"{case}/") or not case
                    for name in here
                ):
                    missing.append((claim.id, requirement.measure, case))
    assert missing == []
    assert [claim.id for claim in required] == list(CLAIMS)
    contracted = {(c.id, r.measure) for c in required for r in c.requirements}
    assert measured - contracted == set()


def test_the_path_of_the_manifest_is_no_part_of_the_key() -> None:
    assert "manifest_path" in tokenize_corpus.definition.not_in_key
    assert "manifest_sha256" not in tokenize_corpus.definition.not_in_key


def test_the_program_ran_in_another_process(work: Work) -> None:
    programs = [row for row in work.records if hasattr(row, "process_id")]
    assert len(programs) == 1
    assert programs[0].process_id != os.getpid()
    assert programs[0].return_code == 0
