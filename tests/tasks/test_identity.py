"""A key names everything a result depends on, the same way in every process."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.identity import (
    StageDefinition,
    Unnameable,
    by_name,
    canonical,
    key_components,
    key_of,
)
from warehouse.store import Artifact, Execution

STAGE = StageDefinition("tokenize", "tasks.identity", (), ())
TIMING = dataclasses.replace(STAGE, measures_time=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 3e-3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    updates: int = 300
    inner: Inner = Inner()
    points: tuple[int, ...] = (5,)


def _execution(nonce="n", sha256="a" * 64, name="tokens.npz"):
    artifact = Artifact(name=name, sha256=sha256, bytes=1)
    return Execution(stage="s", key="k", nonce=nonce, artifacts=(artifact,))


def _components(stage=STAGE, runtime=None, machine=None, **inputs):
    return key_components(
        stage, inputs, runtime or {"jax": "1"}, machine or {"host": "a"}
    )


def test_components_name_every_leaf_of_the_configuration():
    named = by_name(_components(train=Settings()))
    config = {n: v for n, v in named.items() if n.startswith("config:")}
    assert config == {
        "config:train.updates": "300",
        "config:train.inner.rate": "0.003",
        "config:train.points": "[5]",
    }
    assert named["runtime:jax"] == "1"
    assert named["stage:name"] == "tokenize"
    assert "source:tasks.identity" in named


def test_an_execution_counts_by_its_artifacts_alone():
    one, other = _execution(nonce="1"), _execution(nonce="2")
    assert _components(tokens=one) == _components(tokens=other)
    assert _components(tokens=one) != _components(tokens=_execution(sha256="b" * 64))
    assert _components(tokens=one) != _components(tokens=_execution(name="other.npz"))


@pytest.mark.parametrize(
    "changed",
    [
        {"train": Settings(updates=10)},
        {"train": Settings(inner=Inner(rate=1e-3))},
        {"train": Settings(points=(5, 6))},
        {"train": Settings(points=())},
        {"runtime": {"jax": "2"}},
        {"runtime": {"jax": "1", "nproc": "2"}},
        {"stage": dataclasses.replace(STAGE, name="train")},
        {"stage": dataclasses.replace(STAGE, module="tasks.progress")},
        {"stage": TIMING},
    ],
)
def test_each_thing_that_matters_changes_the_key(changed):
    before = key_of(_components(train=Settings()))
    after = key_of(_components(**{"train": Settings(), **changed}))
    assert before != after


def test_the_machine_counts_only_where_time_is_measured():
    elsewhere = {"host": "b"}
    assert _components() == _components(machine=elsewhere)
    assert _components(TIMING) != _components(TIMING, machine=elsewhere)


def test_a_parameter_that_says_where_something_lies_is_not_in_the_key():
    stage = dataclasses.replace(STAGE, not_in_key=("place",))
    assert _components(stage, place="here") == _components(stage, place="there")
    assert _components(STAGE, place="here") != _components(STAGE, place="there")


@pytest.mark.parametrize(
    "value",
    [
        {1},
        frozenset(),
        float("nan"),
        float("inf"),
        b"bytes",
        Path("file"),
        pytest.param(object(), id="an object"),
        len,
        Settings,
        {1: "one"},
        [1, [{2}]],
        1j,
    ],
    ids=repr,
)
def test_what_has_no_stable_name_is_refused(value):
    with pytest.raises(Unnameable, match="train"):
        _components(train=value)


def test_values_that_look_alike_have_different_keys():
    values = [1, 1.0, True, "1", [1], {"x": 1}, None, "null", [], {}, "", [[]], "[]"]
    keys = {key_of(_components(value=value)) for value in values}
    assert len(keys) == len(values)


def test_nesting_and_names_with_dots_do_not_collide():
    flat = key_of(_components(value={"a.b": 1}))
    nested = key_of(_components(value={"a": {"b": 1}}))
    assert flat != nested


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(plain, plain)
def test_plain_values_have_one_key_each(first, second):
    """Two values share a key exactly when they are the same JSON data."""
    same_data = repr(_sorted(canonical(first))) == repr(_sorted(canonical(second)))
    same_key = key_of(_components(value=first)) == key_of(_components(value=second))
    assert same_key == same_data


def _sorted(value):
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def test_the_key_is_the_same_in_a_process_with_another_hash_seed(project):
    script = (
        "from tasks.identity import *\n"
        "stage = StageDefinition('s', 'tasks.identity', ('tasks.reuse',), ())\n"
        "inputs = {'a': {'y': 1, 'x': [2]}}\n"
        "print(key_of(key_components(stage, inputs, {'jax': '1'}, {})))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1
    assert len(keys.pop().strip()) == 64
