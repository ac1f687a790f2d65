"""A folder of evidence is what a user named, and a suggested command finds it again."""

from pathlib import Path

import pytest

from flows import command_line
from flows.options import DEFAULT_ROOT, root_option


def _end(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        command_line.main([str(argument) for argument in arguments])
    return ended.value.code


def test_an_empty_root_is_refused_and_not_the_working_folder(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert _end("runs", "--root", "") == 2
    err = capsys.readouterr().err
    assert "it is empty; name a folder" in err
    assert err.count("\n") == 1


def test_an_empty_variable_is_as_none(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_ROOT", "")
    assert _end("runs") == 2
    assert "no store at 'evidence'" in capsys.readouterr().err


def test_the_working_folder_can_be_named(capsys, monkeypatch, small_store):
    monkeypatch.chdir(small_store)
    assert _end("runs", "--root", ".") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(" --root .")


def test_a_variable_names_the_store(capsys, monkeypatch, small_store):
    monkeypatch.setenv("HARNESS_ROOT", str(small_store))
    assert _end("runs") == 0
    assert "20260102" in capsys.readouterr().out


def test_a_suggested_command_can_be_typed_as_it_stands(capsys, small_store, tmp_path):
    root = tmp_path / "my evidence"
    root.symlink_to(small_store)
    for command in ("runs", "review"):
        assert _end(command, "--root", root) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.endswith(f" --root '{root}'"), last


def test_the_default_root_needs_no_option():
    assert root_option(DEFAULT_ROOT) == ""
    assert root_option(Path("a b")) == " --root 'a b'"
