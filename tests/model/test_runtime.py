"""The fingerprint names what changes bits, as text, the same in every call."""

import os

import pytest

from model.runtime import describe

NEEDED = {
    "python",
    "jax",
    "jaxlib",
    "numpy",
    "platform",
    "device_kind",
    "cpu_isa",
    "nproc",
    "xla_flags",
    "threefry_partitionable",
    "key_implementation",
    "enable_x64",
}


def test_every_field_is_text_and_none_is_missing() -> None:
    fingerprint = describe()
    assert fingerprint.keys() >= NEEDED
    assert all(isinstance(value, str) for value in fingerprint.values())
    assert fingerprint == describe()
    assert fingerprint["platform"] == "cpu"


def test_settings_from_the_environment_show(monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe()
    monkeypatch.setenv("NPROC", "7")
    monkeypatch.setenv("XLA_FLAGS", f"--b=1 --a=2 {os.environ.get('XLA_FLAGS', '')}")
    changed = describe()
    assert changed["nproc"] == "7"
    assert changed["xla_flags"].startswith("--a=2 --b=1")
    assert {name for name in before if before[name] != changed[name]} == {
        "nproc",
        "xla_flags",
    }
