"""The digest of a corpus changes with every byte of it, and never needs a judgement."""

import json
import os
import shutil

import pytest

from model.config import fixture_manifest
from model.refusal import Refused
from tasks.corpus_files import corpus_files


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps([{"file": "a.txt"}, {"file": "b.txt"}]))
    return path


def _digest(path):
    return corpus_files(str(path)).sha256


def test_without_a_manifest_it_is_the_fixture(tmp_path):
    assert corpus_files(None).path == str(fixture_manifest())
    assert corpus_files(None).is_fixture
    copy = shutil.copytree(fixture_manifest().parent, tmp_path / "copy")
    assert corpus_files(str(copy / "manifest.json")).is_fixture


def test_every_byte_of_manifest_and_files_counts_and_the_place_does_not(
    manifest, tmp_path_factory
):
    before = _digest(manifest)
    moved = shutil.copytree(manifest.parent, tmp_path_factory.mktemp("moved") / "here")
    assert _digest(moved / "manifest.json") == before
    assert not corpus_files(str(manifest)).is_fixture
    (manifest.parent / "b.txt").write_text("B")
    changed = _digest(manifest)
    assert changed != before
    manifest.write_text(manifest.read_text() + " ")
    assert _digest(manifest) not in (before, changed)


def test_files_that_nobody_lists_do_not_count(manifest):
    before = _digest(manifest)
    (manifest.parent / "c.txt").write_text("c")
    assert _digest(manifest) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"{}",
        b'[1, null, {}, {"file": 3}]',
        b'[{"file": "../outside.txt"}]',
        b'[{"file": "missing.txt"}]',
        b'[{"file": "\\ud800"}]',
        b'[{"file": "a\\u0000b"}]',
        b'[{"file": "."}]',
        b'[{"file": "circle"}]',
        b'[{"file": "pipe"}]',
        b"[" * 100_000,
    ],
    ids=lambda content: repr(content[:24]),
)
def test_what_is_malformed_has_a_digest_all_the_same(content, manifest):
    """The stage's program refuses it with its reason; here it must only be named."""
    (manifest.parent / "circle").symlink_to("circle")
    os.mkfifo(manifest.parent / "pipe")
    manifest.write_bytes(content)
    assert len(_digest(manifest)) == 64


def test_a_missing_manifest_is_refused_with_its_name(tmp_path):
    with pytest.raises(Refused, match=r"none\.json") as refused:
        corpus_files(str(tmp_path / "none.json"))
    assert refused.value.code == "manifest_missing"
    with pytest.raises(Refused) as refused:
        corpus_files(str(tmp_path))
    assert refused.value.code == "manifest_unreadable"
