"""The contract asks for every case that the checks can make, and for no other.

A case that a check makes and the contract does not list could be dropped from the check
unnoticed; here a new setting, field or bad corpus fails until the contract has it.
"""

from collections.abc import Iterable
from math import comb
from types import SimpleNamespace
from typing import Any

import pytest

from model import presets
from model.checks import checkpoint_damage as damage
from model.checks import checkpoint_refusals as settings
from model.checks.bad_corpora import bad_corpora
from model.checks.changed_requests import REQUESTED, WRITTEN
from model.checks.documents import ALONE, PAIRS
from model.checks.preprocessing import CHANGES
from model.checks.targets import entries, measure_malformed_targets
from model.config import ModelConfig
from model.parameters import initial_parameters
from model.tokenizer import describe
from model.training_request import training_identity
from warehouse.contract import Requirement, read_contract

ARRAYS = 6
PRESETS = ("fixture", "fixture_tuned", "prose")


def required(claim: str, measure: str) -> list[Requirement]:
    return [
        requirement
        for listed in read_contract()
        for requirement in listed.requirements
        if (listed.id, requirement.measure) == (claim, measure)
    ]


def cases(claim: str, measure: str) -> set[str]:
    (requirement,) = required(claim, measure)
    assert not requirement.presets
    return set(requirement.cases)


def counts(claim: str) -> dict[str, Any]:
    """Exact number of pairs by the case that it is required of."""
    found = required(claim, "recounted_pairs_named")
    assert {requirement.relation for requirement in found} == {"equal"}
    return {case: row.limit for row in found for case in row.cases}


def under(measure: str, names: Iterable[str]) -> set[str]:
    return {f"{measure}/{name}" for name in names}


@pytest.fixture(params=PRESETS)
def changed(request: pytest.FixtureRequest) -> set[str]:
    """Cases of every leaf of the identity that a training of a preset has."""
    config = presets.preset(request.param)
    corpus = SimpleNamespace(
        split_sha256="s",
        description={"tokens_sha256": {"train": "t"}, "tokenizer": describe()},
    )
    asked: Any = SimpleNamespace(train=config.train, model=config.model, corpus=corpus)
    leaves = settings.changed_settings(training_identity(asked))
    return {settings.wrong_setting(path).case for path in leaves}


DAMAGES = [
    *damage.array_damages("parameters/wte.weight"),
    *(each.wrong.case for each in damage._file_damages()),
]


def test_every_leaf_of_the_identity_is_required_in_every_preset(
    changed: set[str],
) -> None:
    assert cases("2.4", settings.SETTING) == changed
    assert cases("2.4", damage.DAMAGE) == set(DAMAGES)
    written = {case for case in changed if case.startswith("precision/")}
    assert cases("2.4", WRITTEN) == written
    assert cases("2.4", REQUESTED) == changed - written
    assert len(written) == 3
    runtimes = cases("2.4", "checkpoint_under_another_runtime")
    every = (
        under(settings.SETTING, changed)
        | under(REQUESTED, changed - written)
        | under(WRITTEN, written)
        | under(damage.DAMAGE, DAMAGES)
        | under("checkpoint_under_another_runtime", runtimes)
        | under("non_finite_update", ("loss", "gradient"))
    )
    assert cases("2.4", "refused_field_named") == every
    again = under("non_finite_update_again", ("loss", "gradient"))
    assert cases("2.4", settings.UNTOUCHED) == every | again


def test_the_numbers_of_pairs_follow_from_the_identity(changed: set[str]) -> None:
    leaves = len(changed)
    assert counts("2.4") == {
        settings.SETTING: comb(leaves, 2),
        damage.DAMAGED_AND_CHANGED: leaves * len(DAMAGES),
        damage.DAMAGE: comb(ARRAYS, 2),
    }
    (none,) = required("2.4", "recounted_pairs_hidden_or_missing")
    assert (set(none.cases), none.limit) == (set(counts("2.4")), 0)


def test_every_setting_of_tokens_is_required() -> None:
    names = {f"{part}/{name}" for part, name, _ in CHANGES}
    measure = "changed_preprocessing"
    assert cases("1.6", measure) == names
    assert cases("1.6", "refused_field_named") == under(measure, names)
    assert cases("1.6", "artifact_after_refusal") == under(measure, names)
    assert counts("1.6") == {measure: comb(len(names), 2)}


def test_every_malformed_target_is_required() -> None:
    model = ModelConfig()
    places = entries(initial_parameters(model, 1), model)
    found = measure_malformed_targets(places)
    names = {row["case_name"] for row in found.refusals}
    measure = "malformed_targets"
    assert cases("1.11", measure) == names
    assert cases("1.11", "refused_field_named") == under(measure, names)
    assert cases("1.11", "targets_after_refusal") == under(measure, names)
    assert counts("1.11") == {measure: len(found.refused_pairs)}


@pytest.mark.parametrize("claim", ["1.4", "1.5"])
def test_every_bad_corpus_is_required(claim: str) -> None:
    made = [bad for bad in bad_corpora(12) if bad.claim == claim]
    for measure in {bad.measure for bad in made}:
        names = {bad.case_name for bad in made if bad.measure == measure}
        assert cases(claim, measure) == names
    every = {f"{bad.measure}/{bad.case_name}" for bad in made}
    assert cases(claim, "corpus_after_refusal") == every
    assert cases(claim, "refused_field_named") == every


def test_every_two_bad_documents_are_required_together() -> None:
    together = [bad for bad in bad_corpora(12) if bad.case_name not in ALONE]
    assert counts("1.4") == {PAIRS: comb(len(together), 2)}


def test_every_incomparable_perplexity_is_required() -> None:
    measure = "incomparable_perplexity"
    names = cases("1.13", measure)
    parts = {"tokenizer", "vocabulary", "mask_policy"}
    assert {part for name in names for part in name.split("+")} == parts
    assert len(names) == len(parts) + comb(len(parts), 2)
    for about in ("refused_field_named", "perplexity_after_refusal"):
        assert cases("1.13", about) == under(measure, names)
