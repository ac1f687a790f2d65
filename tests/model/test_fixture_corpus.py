"""The committed fixture is the declared draw, and its seed makes it again."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from model import fixture_corpus
from model.config import fixture_manifest
from model.documents import Document, load_text_manifest
from model.manifest import splits_sha256

DECLARED = {
    "train": [8, 28, 30, 30],
    "validation": [4, 10, 10, 8],
    "heldout": [9, 10, 7, 6],
}


@pytest.fixture(scope="module")
def documents() -> tuple[Document, ...]:
    return load_text_manifest(fixture_manifest(), 12)


def texts(documents: tuple[Document, ...], split: str) -> list[str]:
    return [each.data.decode() for each in documents if each.split == split]


def test_the_seed_makes_the_committed_files_again_byte_for_byte(tmp_path: Path) -> None:
    made = fixture_corpus.write_fixture_corpus(tmp_path / "fixture").parent
    committed = fixture_manifest().parent
    names = sorted(path.name for path in committed.iterdir())
    assert sorted(path.name for path in made.iterdir()) == names
    assert len(names) == 160 + 2
    different = [
        name
        for name in names
        if (made / name).read_bytes() != (committed / name).read_bytes()
    ]
    assert different == []


def test_another_seed_makes_another_draw(tmp_path: Path) -> None:
    made = fixture_corpus.write_fixture_corpus(tmp_path, seed=1)
    assert made.read_bytes() != fixture_manifest().read_bytes()
    assert len(load_text_manifest(made, 12)) == 160


def test_the_committed_digest_is_that_of_the_committed_splits(
    documents: tuple[Document, ...],
) -> None:
    draw = json.loads((fixture_manifest().parent / "draw.json").read_bytes())
    assert draw["seed"] == fixture_corpus.SEED
    assert draw["splits_sha256"] == splits_sha256([each.entry for each in documents])


@pytest.mark.parametrize("split", DECLARED)
def test_each_split_has_the_declared_number_of_documents_of_each_length(
    documents: tuple[Document, ...], split: str
) -> None:
    lengths = Counter(len(text.partition("|")[0]) for text in texts(documents, split))
    assert [lengths[length] for length in (2, 3, 4, 5)] == DECLARED[split]


def test_every_document_is_a_prefix_a_bar_and_the_prefix_reversed(
    documents: tuple[Document, ...],
) -> None:
    for document in documents:
        prefix, _, rest = document.data.decode().partition("|")
        assert rest == prefix[::-1]
        assert set(prefix) <= set("abcdef")
        assert document.entry.group == "/".join(sorted({prefix, rest}))


def test_no_source_group_gives_two_documents(documents: tuple[Document, ...]) -> None:
    groups = Counter(document.entry.group for document in documents)
    assert groups.most_common(1)[0][1] == 1
    short = [group for group in groups if len(group.split("/")[0]) == 2]
    assert len(short) == 21, "of length 2, all 21 groups are needed"


def test_the_demonstrations_come_first_and_the_diagnostic_is_in_no_split(
    documents: tuple[Document, ...],
) -> None:
    first = texts(documents, "heldout")[:3]
    assert [text.partition("|")[0] for text in first] == ["dbea", "aaed", "adeb"]
    assert "abc/cba" not in {document.entry.group for document in documents}


def test_heldout_has_276_targets_and_the_published_entropy_floor(
    documents: tuple[Document, ...],
) -> None:
    heldout = texts(documents, "heldout")
    targets = sum(len(text) + 1 for text in heldout)
    letters = sum(len(text.partition("|")[0]) for text in heldout)
    floor = letters * math.log(6) + len(heldout) * math.log(4)
    assert (len(heldout), targets, letters) == (32, 276, 106)
    assert floor == pytest.approx(234.288, abs=5e-4)
    assert floor / targets == pytest.approx(0.8489, abs=5e-5)
