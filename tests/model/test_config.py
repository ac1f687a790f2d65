"""Presets are the declared ones, and a setting that means nothing is refused."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from model import config, limits, presets
from model.refusal import ReasonCode, Refused


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_is_valid_and_survives_json(name: str) -> None:
    settings = presets.preset(name)
    limits.validate(settings)
    assert settings.preset == name
    text = json.dumps(config.to_dict(settings))
    assert config.from_dict(config.RunConfig, json.loads(text)) == settings


def test_the_fixture_is_the_declared_system() -> None:
    settings = presets.fixture()
    model, train = settings.model, settings.train
    assert (model.vocabulary_tokens, model.context_tokens) == (259, 12)
    assert (model.blocks, model.width, model.heads, model.head_width) == (1, 24, 2, 12)
    assert (model.feed_forward_width, model.dropout_rate) == (48, 0.1)
    assert model.layer_norm_epsilon == 1e-5
    declared = config.OptimizerConfig(
        learning_rate=3e-3, beta1=0.9, beta2=0.999, epsilon=1e-8
    )
    assert train.optimizer == declared
    extras = dataclasses.astuple(train.optimizer)[4:]
    assert extras == (0, 0, 1.0, 0.0, 0.0, 0, 0, 0.0)  # no schedule, decay or average
    assert (train.batch_documents, train.updates) == (16, 300)
    assert settings.interrupt.points == (5,)


def test_the_tuned_fixture_differs_in_its_training_recipe_alone() -> None:
    plain, tuned = presets.fixture(), presets.fixture_tuned()
    assert tuned.train != plain.train
    same = dataclasses.replace(tuned, preset="fixture", train=plain.train)
    assert same == plain


def test_the_prose_preset_has_four_blocks_over_256_tokens() -> None:
    settings = presets.prose()
    model = settings.model
    assert (model.blocks, model.width, model.heads) == (4, 128, 4)
    assert (model.feed_forward_width, model.context_tokens) == (512, 256)
    assert (settings.train.batch_documents, settings.train.updates) == (8, 300)


def test_the_release_policies_name_their_dense_and_cache_formats() -> None:
    formats = {name: (p.dense, p.cache) for name, p in config.POLICIES.items()}
    assert formats == {
        "fp32": ("fp32", "fp32"),
        "bf16": ("bf16", "bf16"),
        "w8a8": ("w8a8", "int8"),
    }


def test_an_unknown_preset_is_refused_with_the_known_ones_and_a_guess() -> None:
    with pytest.raises(
        Refused, match=r"'fixure' is unknown; did you mean 'fixture'"
    ) as r:
        presets.preset("fixure")
    assert r.value.code is ReasonCode.UNKNOWN_PRESET
    assert "known: fixture, fixture_tuned, prose" in r.value.message


def test_an_override_replaces_one_setting_and_nothing_else() -> None:
    before = presets.fixture()
    after = presets.override(before, ["train.updates=10", "interrupt.points=2,3"])
    assert after.train == dataclasses.replace(before.train, updates=10)
    assert after.interrupt.points == (2, 3)
    assert after.model == before.model


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.width=25", "multiple of model.heads"),
        ("model.dropout_rate=1", "below 1"),
        ("model.dropout_rate=-0.1", "below 1"),
        ("model.blocks=0", "more than 0"),
        ("model.vocabulary_tokens=260", "259"),
        ("model.context_tokens=2", "at least 3"),
        ("train.updates=-1", "more than 0"),
        ("train.order_seed=-1", "0 or more"),
        ("train.dropout_seed=4294967296", "below 2**32"),
        ("train.traced_updates=11", "train.traced_updates (11)"),
        ("interrupt.points=13", "4 more than every one of interrupt.points [13]"),
        ("certify.points=", "certify.points"),
        ("certify.chain=7,3", "rising order"),
        ("certify.final_update=15", "4 more than every one of certify.points"),
        ("evaluate.reference_documents=0", "more than 0"),
        ("evaluate.compiled_batch_sizes=0", "at least 1"),
        ("train.optimizer.learning_rate=0", "more than 0"),
        ("train.optimizer.final_learning_rate_share=1.5", "at most 1"),
        ("train.optimizer.average_decay=1", "below 1"),
        ("train.optimizer.weight_decay=-1", "0 or more"),
        ("interrupt.points=[]", "one or more"),
        ("interrupt.points=301", "train.updates (300)"),
        ("evaluate.batch_sizes=0", "at least 1"),
        ("cache.lengths=-1", "0 or more"),
        ("preset=prose", "choose the preset itself"),
        ("export.prompts=", "one or more prompts"),
        ("export.prompts=abcdefghijkl", "at most 11 bytes"),
        ("export.prompts=\udcff", "UTF-8"),
        ("export.platforms=[]", "'cuda'"),
        ("export.platforms=foo", "'cuda'"),
        ("export.platforms=cpu,cpu", "each once"),
        ("target.platform=cuda", "of tpu, gpu"),
        ("target.platform=cpu", "of tpu, gpu"),
        ("profile.prompt=abcdefghijkl", "at most 11 bytes"),
        ("interrupt.points=5,5", "each update once"),
        ("interrupt.other_order_seed=12", "another seed than train.order_seed"),
        ("interrupt.other_dropout_seed=13", "another seed than train.dropout_seed"),
        ("model.width=100000000", "at most 268435456"),
        ("model.feed_forward_width=100000000", "at most 268435456"),
        ("model.blocks=100000000", "at most 268435456"),
        ("model.context_tokens=100000000", "at most 268435456"),
    ],
)
def test_a_setting_without_meaning_is_refused_in_one_sentence(
    assignment: str, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        presets.override(presets.fixture(), [assignment])
    assert refused.value.code is ReasonCode.SETTING_INVALID
    assert words in refused.value.message
    assert assignment.partition("=")[0] in refused.value.message


def test_no_stage_has_more_than_fifteen_settings() -> None:
    for group in dataclasses.fields(config.RunConfig):
        value = getattr(presets.fixture(), group.name)
        if dataclasses.is_dataclass(value):
            assert len(dataclasses.fields(value)) <= 15, group.name


def test_the_committed_fixture_lies_inside_the_package() -> None:
    path = config.fixture_manifest()
    assert path.is_file()
    assert Path(config.__file__).parent in path.parents


def test_configuration_imports_neither_jax_nor_numpy() -> None:
    code = "import sys, model.config; print({'jax', 'numpy'} & {*sys.modules})"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True
    )
    assert shown.stdout.strip() == b"set()"
