"""What a user's file is made of, and that it stands in the key of a stage."""

from pathlib import Path

import pytest

from model.config import ModelConfig
from model.refusal import ReasonCode, Refused
from tasks.identity import by_name, key_of
from tasks.implementation_files import components_of_system, system_of
from tasks.reuse import components_of_call, explain_difference
from tasks.tokenize_corpus import tokenize_corpus


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that imports from its folder, from a package of it, and from elsewhere."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "deep.py").write_text("SCALE = 2\n")
    (tmp_path / "beside.py").write_text("from parts import deep\n")
    (tmp_path / "unused.py").write_text("x = 1\n")
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import json\nimport numpy\nimport beside\nfrom model.digests import x\n"
    )
    return mine


def _components(file: Path) -> dict[str, str]:
    return by_name(components_of_system(system_of(str(file))))


def _key(file: Path | None) -> dict[str, str]:
    inputs = {"manifest_path": "m", "manifest_sha256": "0", "model": ModelConfig()}
    system = system_of(str(file)) if file else None
    call = {**inputs, "runtime": {"jax": "1"}, "system": system}
    return by_name(components_of_call(tokenize_corpus.definition, call))


def test_a_file_is_made_of_what_it_imports_from_its_folder(file: Path) -> None:
    """Transitively, packages included; what nobody imports is no part of it."""
    components = _components(file)
    own = [name for name in components if name.startswith("implementation:")]

    assert sorted(own) == [
        "implementation:beside.py",
        "implementation:mine.py",
        "implementation:parts/__init__.py",
        "implementation:parts/deep.py",
    ]
    assert "distribution:numpy" in components
    assert {"source:model.digests", "source:model.array_adapters"} <= set(components)


def test_a_changed_line_in_a_helper_is_another_system(file: Path) -> None:
    """A comment is not; the reason of the miss names the file."""
    before = _key(file)
    (file.parent / "parts" / "deep.py").write_text("SCALE = 2  # as before\n")
    assert _key(file) == before

    (file.parent / "parts" / "deep.py").write_text("SCALE = 3\n")
    after = _key(file)
    told = explain_difference(before, after)

    assert told == "implementation changed: parts/deep.py"


def test_the_built_in_system_adds_nothing_to_a_key() -> None:
    """So that stages of the built-in system are not computed again for it."""
    components = _key(None)

    assert not any(name.startswith("implementation:") for name in components)
    assert "source:model.array_adapters" not in components


def test_keys_with_and_without_a_file_differ(file: Path) -> None:
    """Nobody's results are taken for somebody else's."""
    call = {"manifest_path": "m", "manifest_sha256": "0", "model": ModelConfig()}
    given = {**call, "runtime": {"jax": "1"}}
    definition = tokenize_corpus.definition
    with_file = components_of_call(definition, given | {"system": system_of(str(file))})

    assert key_of(with_file) != key_of(components_of_call(definition, given))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """With its path, or the line that is no Python."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("x = (\n")
    for path, part in ((tmp_path / "absent.py", "No such file"), (wrong, "line 1")):
        with pytest.raises(Refused, match=part) as refused:
            system_of(str(path))
        assert refused.value.code is ReasonCode.IMPLEMENTATION_UNREADABLE
