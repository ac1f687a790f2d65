"""The real text under tests/data is what its manifest says and its cutter makes."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from model.documents import Document, load_text_manifest


@pytest.fixture(scope="module")
def folder(project: Path) -> Path:
    return project / "tests/data/devils_dictionary"


@pytest.fixture(scope="module")
def cutter(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("cut", folder / "cut.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def documents(folder: Path) -> tuple[Document, ...]:
    return load_text_manifest(folder / "manifest.json", 256)


def refused(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "refused.json").read_bytes())["definitions"]


def test_the_cutter_makes_every_committed_file_again(
    folder: Path, cutter: ModuleType, tmp_path: Path
) -> None:
    cutter.write_corpus(tmp_path)
    made = {p.relative_to(tmp_path): p for p in tmp_path.rglob("*") if p.is_file()}
    kept_by_hand = {"source.txt", "cut.py"}
    committed = {
        p.relative_to(folder): p
        for p in folder.rglob("*")
        if p.is_file() and p.name not in kept_by_hand and p.suffix != ".pyc"
    }
    assert set(made) == set(committed)
    different = [
        name
        for name, path in made.items()
        if path.read_bytes() != committed[name].read_bytes()
    ]
    assert different == []


def test_every_definition_is_a_document_or_is_listed_as_refused(
    folder: Path, cutter: ModuleType, documents: tuple[Document, ...]
) -> None:
    text = (folder / "source.txt").read_bytes().decode("utf-8")
    definitions = cutter.cut_definitions(text)
    left_out = refused(folder)
    assert len(documents) + len(left_out) == len(definitions) == 999
    assert len(documents) == 544
    lengths = sorted(len(definition.encode()) for _, definition in definitions)
    listed = [len(each.data) for each in documents]
    listed += [row["document_bytes"] for row in left_out]
    assert sorted(listed) == lengths


def test_a_definition_is_left_out_for_its_length_or_because_it_stands_twice(
    folder: Path, documents: tuple[Document, ...]
) -> None:
    left_out = refused(folder)
    overlong = [row for row in left_out if row["reason"] == "document_overlong"]
    twice = [row["id"] for row in left_out if row["reason"] == "duplicate_content"]
    assert min(row["document_bytes"] for row in overlong) == 256
    assert max(len(each.data) for each in documents) == 255
    assert twice == ["precipitate-2"]
    assert len(overlong) + len(twice) == len(left_out)


def test_definitions_of_one_headword_share_a_split_and_a_tenth_is_held_out(
    documents: tuple[Document, ...],
) -> None:
    splits: dict[str, set[str]] = {}
    for document in documents:
        splits.setdefault(document.entry.group, set()).add(document.split)
    assert all(len(members) == 1 for members in splits.values())
    counts = {
        split: sum(each.split == split for each in documents)
        for split in ("train", "validation", "heldout")
    }
    assert counts == {"train": 436, "validation": 54, "heldout": 54}


def test_a_definition_begins_with_its_headword(
    documents: tuple[Document, ...],
) -> None:
    for document in documents:
        assert document.data.decode().startswith(document.entry.group)


def test_the_public_domain_notice_is_kept_beside_the_text(folder: Path) -> None:
    notice = (folder / "NOTICE.txt").read_text("utf-8")
    assert "A Public Domain Text, Copyright Expired" in notice
    assert "Please redistribute this changed" in notice
