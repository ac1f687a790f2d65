"""Planted faults: each is complete, none is planted into the air, and checks see them.

Whole stages run on every fault in the drill. Here a few are put before one check each,
because a check that sees none of them would be no check.
"""

import dataclasses
import functools
import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import model
from model.checks.generation import check_rules
from model.checks.objective import measure_padded_document
from model.checks.tokens import measure_round_trip
from model.faults import Fault, every_fault, find
from model.presets import preset
from model.refusal import Refused
from model.replaced import KEPT
from model.replaced import replace as replace_function
from model.system import FUNCTIONS
from model.tokenizer import decode, encode
from warehouse.contract import read_contract

FAULTS = every_fault()
GROUPS = {
    *("tokenizer", "objective", "attention", "dropout", "order", "optimizer"),
    *("checkpoint", "evaluation", "cache", "w8a8", "export", "generation"),
    *("timing", "profiler", "benign"),
}
# owner/repository#number, or why there is no report
SOURCE = re.compile(r"[\w.-]+/[\w.-]+(#\d+|/.+)|(none|thought) .+")


@functools.cache
def measured_by() -> dict[str, set[str]]:
    """Stages that measure each claim, by the contract."""
    found: dict[str, set[str]] = {}
    for claim in read_contract():
        found[claim.id] = {requirement.stage for requirement in claim.requirements}
    return found


def test_there_are_at_least_fifty_faults_and_five_benign_variants():
    benign = [fault for fault in FAULTS if fault.is_benign]

    assert len(FAULTS) - len(benign) >= 50
    assert len(benign) >= 5
    assert {fault.group for fault in FAULTS} == GROUPS


def test_no_two_faults_have_one_name():
    twice = [name for name, n in Counter(f.name for f in FAULTS).items() if n > 1]

    assert not twice


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_complete(fault: Fault):
    stages = measured_by()

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fault.name)
    assert fault.summary.endswith(".")
    assert SOURCE.fullmatch(fault.source), fault.source
    assert stages[fault.claim] & set(fault.stages), "no stage of it measures its claim"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_replaces_a_function_that_there_is(fault: Fault):
    module, _, name = fault.replaces.rpartition(".")
    original = getattr(importlib.import_module(module), name)

    assert callable(original)
    assert callable(fault.replacement(original))


def test_nothing_but_a_name_of_a_module_holds_what_a_system_replaces():
    """Names are rebound; a default, a table or a compiled twin would stay built-in,
    and its check would measure the built-in system in the place of any other.
    """
    replaced = {fault.replaces for fault in FAULTS} | {each.home for each in FUNCTIONS}
    originals = {id(_named(name)): name for name in replaced}
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(model.__path__, "model.")
        if not found.name.startswith(KEPT)
    ]

    held = {
        f"{module.__name__}.{name} holds {originals[id(inner)]}"
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", module.__name__) == module.__name__
        for inner in _inside(value)
        if id(inner) in originals
    }
    assert not held


def _named(name):
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def _inside(value, deep=4):
    """Yields what a value of a module holds, but not the value itself."""
    parts = []
    if isinstance(value, type):
        parts = [*vars(value).values()]
    elif isinstance(value, dict):
        parts = [*value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = [*value]
    elif isinstance(value, functools.partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif callable(value):
        parts = [
            *(getattr(value, "__defaults__", None) or ()),
            *(getattr(value, "__kwdefaults__", None) or {}).values(),
            getattr(value, "__wrapped__", None),
        ]
    for part in parts:
        yield part
        if deep:
            yield from _inside(part, deep - 1)


@dataclasses.dataclass(frozen=True)
class _Held:
    """A check that would stay blind: it keeps the function that it was made with."""

    product: object = encode


@pytest.mark.parametrize(
    "value",
    [
        _Held,
        lambda product=encode: product,
        functools.partial(max, key=encode),
        {"a": [encode]},
        jax.jit(encode),
    ],
)
def test_a_hidden_reference_is_seen(value):
    assert encode in list(_inside(value))


def test_a_module_holds_the_faults_of_its_group():
    for fault in FAULTS:
        module = importlib.import_module(f"model.faults.{fault.group}")
        assert fault in module.FAULTS


def test_an_unknown_fault_is_refused_with_the_known_ones():
    with pytest.raises(Refused, match="causal-mask-leaks-one"):
        find("causal-mask-leaks-two")


def test_a_module_out_of_reach_is_passed_over(monkeypatch):
    """A reopened release runs where most of the system is absent."""
    asked = []
    replace_function("model.absent.function", asked.append)
    assert asked == []


@pytest.mark.parametrize(
    "name",
    [
        "byte-offset-two",
        "invalid-bytes-replaced-in-encode",
        "unicode-normalised-before-encode",
    ],
)
def test_hostile_texts_see_a_faulty_tokenizer(name):
    wrong = measure_round_trip(find(name).replacement(encode), decode)

    seen = [row for row in wrong if _is_unmet(row)]
    assert seen
    assert not [row for row in measure_round_trip(encode, decode) if _is_unmet(row)]


def _is_unmet(row) -> bool:
    wanted = 256 if row["measure"] == "byte_tokens" else 0
    return row["value_count"] != wanted


@pytest.mark.parametrize(
    "name",
    [
        "bos-missing-at-serving",
        "cache-not-carried-between-steps",
        "context-overrun-generates",
        "end-never-chosen-first",
        "end-told-as-requested",
        "eos-does-not-stop",
        "greedy-may-emit-pad-or-bos",
        "tie-breaking-unspecified",
        "token-before-the-last-fed",
        "token-by-token-decode",
    ],
)
def test_crafted_logits_see_a_faulty_generation(name, monkeypatch):
    fault = find(name)
    function = fault.replaces.rpartition(".")[2]
    for module in ("model.generation", "model.checks.generation"):
        held = importlib.import_module(module)
        if hasattr(held, function):
            faulty = fault.replacement(getattr(held, function))
            monkeypatch.setattr(held, function, faulty)

    assert [row for row in check_rules() if row["expected"] != row["measured"]]


def test_crafted_logits_see_no_fault_in_the_system():
    assert not [row for row in check_rules() if row["expected"] != row["measured"]]


def test_a_gradient_that_is_not_finite_is_counted():
    rows = measure_padded_document(
        {"a": np.array([1.0, np.nan]), "b": np.array([np.inf])}
    )

    assert rows["value_count"] == 2


@pytest.mark.parametrize(
    ("name", "is_seen"),
    [("additive-mask-too-small", True), ("mask-fill-of-minus-ten-thousand", False)],
)
def test_a_fill_hides_a_key_or_does_not(name, is_seen):
    """Why -1e4 is benign and -10 is not: what a hidden key weighs."""
    attend = find(name).replacement(None)
    few = jnp.ones((1, 2, 1, 4))
    mask = jnp.array([[[[True, False], [True, True]]]])

    _, weights = attend(few, few, few, mask)

    assert (float(weights[0, 0, 0, 1]) != 0.0) == is_seen


def test_a_rest_that_is_dropped_is_missed(monkeypatch):
    """The declared corpus fills every batch, so an uneven epoch is walked beside it."""
    from model.checks import draws

    train = preset("fixture").train
    assert draws.measure_uneven_epoch(train, 7)["value_count"] == 0

    fault = find("incomplete-last-batch-dropped-in-training")
    monkeypatch.setattr(draws, "take_batch", fault.replacement(draws.take_batch))
    assert draws.measure_uneven_epoch(train, 7)["value_count"] > 0


def test_a_batch_that_is_not_filled_anew_is_seen(monkeypatch):
    from model.checks import draws

    tokens = np.arange(3, 24, dtype=np.int32).reshape(7, 3)
    assert draws.measure_short_batch(tokens)["value_count"] == 0

    fault = find("stale-rows-in-short-batch")
    monkeypatch.setattr(draws, "gather_batch", fault.replacement(draws.gather_batch))
    assert draws.measure_short_batch(tokens)["value_count"] == 6


def test_a_seed_whose_draws_are_the_next_seeds_is_seen(monkeypatch):
    """Of four draws of four seeds next to each other seven are left."""
    from model.checks import draws

    train = preset("fixture").train
    assert [row["value_count"] for row in draws.measure_other_seeds(train, 96)] == [
        0,
        0,
    ]

    fault = find("epoch-added-to-order-seed")
    monkeypatch.setattr(draws, "epoch_order", fault.replacement(draws.epoch_order))
    key = draws.dropout_key
    monkeypatch.setattr(
        draws, "dropout_key", lambda seed, update: key(seed + update, 0)
    )
    assert [row["value_count"] for row in draws.measure_other_seeds(train, 96)] == [
        9,
        9,
    ]


def test_tensors_of_one_key_are_seen():
    from model.checks import draws
    from model.parameters import initial_parameters

    model = preset("fixture").model
    right = draws.measure_alike_tensors(initial_parameters(model, 7))
    one_key = find("one-key-for-every-tensor").replacement(initial_parameters)
    wrong = draws.measure_alike_tensors(one_key(model, 7))

    assert right["value_real"] < 5
    assert wrong["value_real"] > 10


def test_tensors_that_nobody_drew_are_no_evidence():
    from model.checks import draws

    nothing = draws.measure_alike_tensors({"a": jnp.zeros(9), "b": jnp.ones(9)})
    assert nothing["value_real"] is None


def test_a_bias_correction_that_stops_counting_is_seen(monkeypatch):
    """Long before the end of a training, and long behind the updates of a short one."""
    from model.checks import updates

    given = [{"matrix": jnp.arange(1.0, 7.0).reshape(2, 3) * x} for x in (0.1, 0.01)]
    measure = "update_parameters_largest_difference"

    def apart():
        found = updates.measure_moving_recipe(*given)
        rows = [row for row in found if row["measure"] == measure]
        return {row["case_name"]: row["value_real"] for row in rows}

    assert max(apart().values()) < 1e-4

    fault = find("bias-correction-stops-counting")
    monkeypatch.setattr(updates, "adam_update", fault.replacement(updates.adam_update))
    wrong = {case for case, share in apart().items() if share > 1e-4}
    assert wrong == {"moving/update-2000"}


def test_a_temperature_that_is_ignored_is_seen(monkeypatch):
    from model.checks import sampling

    right = [row["value_real"] for row in sampling.check_temperatures()]
    assert max(right) < 4

    fault = find("temperature-ignored")
    monkeypatch.setattr(sampling, "sampler", fault.replacement(sampling.sampler))
    cold, asked, warm = (row["value_real"] for row in sampling.check_temperatures())
    assert asked == right[1]
    assert min(cold, warm) > 20


def test_an_epoch_that_never_ends_does_not_hold_the_check(monkeypatch):
    """The walk ends with the batches that an epoch has, whatever the cursor says."""
    from model.checks import draws

    fault = find("epoch-counter-not-advanced")
    monkeypatch.setattr(draws, "take_batch", fault.replacement(draws.take_batch))

    assert draws.measure_uneven_epoch(preset("fixture").train, 7)["value_count"] == 0


def test_no_fault_imports_the_system_at_once():
    """They lie beside a reopened release, which must not reach the training code."""
    allowed = {"model.faults", "model.refusal", "model.tokenizer"}
    for path in Path(importlib.import_module("model.faults").__path__[0]).glob("*.py"):
        text = path.read_text("utf-8")
        imported = set(re.findall(r"^from (model[\w.]*) import", text, re.M))
        assert {name for name in imported if "faults" not in name} <= allowed, path
