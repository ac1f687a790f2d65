"""Document files are checked against their digest and stay in their folder."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from model.documents import Document, load_text_manifest
from model.refusal import ReasonCode, Refused

CONTEXT = 12


class Corpus:
    """A good corpus of three documents that a test may spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[dict[str, Any]] = []
        for split in ("train", "validation", "heldout"):
            self.entries.append(
                {
                    "id": split,
                    "file": f"{split}.txt",
                    "split": split,
                    "group": split,
                    "license": "CC0-1.0",
                    "source": "a test",
                    "sha256": "",
                }
            )
            self.fill(-1, split.encode()[:8])

    def fill(self, place: int, data: bytes) -> None:
        (self.folder / self.entries[place]["file"]).write_bytes(data)
        self.entries[place]["sha256"] = hashlib.sha256(data).hexdigest()

    def load(self, context: int | None = CONTEXT) -> tuple[Document, ...]:
        path = self.folder / "manifest.json"
        path.write_text(json.dumps(self.entries), "utf-8")
        return load_text_manifest(path, context)

    def refusal(self) -> Refused:
        with pytest.raises(Refused) as refused:
            self.load()
        assert "\n" not in refused.value.message
        return refused.value


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    folder = tmp_path / "corpus"
    folder.mkdir()
    return Corpus(folder)


def test_documents_hold_their_real_bytes_in_manifest_order(corpus: Corpus) -> None:
    corpus.fill(1, b"a\r\nb\rc\n")
    documents = corpus.load()
    assert [each.document_id for each in documents] == [
        "train",
        "validation",
        "heldout",
    ]
    assert documents[1].data == b"a\r\nb\rc\n"
    assert documents[1].split == "validation"


SPOILERS: dict[str, tuple[Callable[[Corpus], object], ReasonCode, str]] = {
    "altered": (
        lambda c: (c.folder / "train.txt").write_bytes(b"other"),
        ReasonCode.DOCUMENT_ALTERED,
        "has 5 bytes with sha256",
    ),
    "altered beyond the context": (
        lambda c: (c.folder / "train.txt").write_bytes(b"x" * 3_000_000),
        ReasonCode.DOCUMENT_ALTERED,
        "has 3000000 bytes",
    ),
    "empty": (lambda c: c.fill(0, b""), ReasonCode.DOCUMENT_EMPTY, "has 0 bytes"),
    "overlong": (
        lambda c: c.fill(0, b"x" * 12),
        ReasonCode.DOCUMENT_OVERLONG,
        "has 12 bytes, 13 tokens with BOS; allowed are 12 tokens, 11 bytes",
    ),
    "very long": (
        lambda c: c.fill(0, b"x" * 3_000_000),
        ReasonCode.DOCUMENT_OVERLONG,
        "has 3000000 bytes",
    ),
    "not UTF-8": (
        lambda c: c.fill(0, b"abc\xed\xa0\x80"),
        ReasonCode.DOCUMENT_NOT_UTF8,
        "byte offset 3, where 0xed stands",
    ),
    "missing": (
        lambda c: (c.folder / "train.txt").unlink(),
        ReasonCode.DOCUMENT_MISSING,
        "file 'train.txt'",
    ),
    "a folder": (
        lambda c: c.entries[0].update(file="."),
        ReasonCode.DOCUMENT_UNREADABLE,
        "Is a directory",
    ),
    "a pipe": (
        lambda c: (
            (c.folder / "train.txt").unlink(),
            os.mkfifo(c.folder / "train.txt"),
        ),
        ReasonCode.DOCUMENT_UNREADABLE,
        "no regular file",
    ),
    "below a file": (
        lambda c: c.entries[0].update(file="heldout.txt/x"),
        ReasonCode.DOCUMENT_UNREADABLE,
        "Not a directory",
    ),
    "a name too long": (
        lambda c: c.entries[0].update(file="x" * 5000),
        ReasonCode.DOCUMENT_UNREADABLE,
        "name too long",
    ),
    "links in a circle": (
        lambda c: (
            (c.folder / "a").symlink_to("b"),
            (c.folder / "b").symlink_to("a"),
            c.entries[0].update(file="a"),
        ),
        ReasonCode.DOCUMENT_UNREADABLE,
        "symbolic links",
    ),
}


@pytest.mark.parametrize("name", SPOILERS)
def test_a_spoilt_document_is_refused_with_name_value_and_reason(
    corpus: Corpus, name: str
) -> None:
    spoil, code, words = SPOILERS[name]
    spoil(corpus)
    refused = corpus.refusal()
    assert refused.code is code, refused.message
    assert words in refused.message
    assert "'train'" in refused.message


@pytest.mark.parametrize(
    "file",
    [
        "/etc/hostname",
        "../secret.txt",
        "a/../../secret.txt",
        "..",
        "..\\secret.txt",
        "C:\\secret.txt",
        "train.txt\0",
        "\ud800",
        "//etc/hostname",
    ],
)
def test_a_path_that_leaves_the_folder_is_refused_before_it_is_opened(
    corpus: Corpus, file: str
) -> None:
    (corpus.folder.parent / "secret.txt").write_bytes(b"secret")
    corpus.entries[0].update(file=file, sha256=hashlib.sha256(b"secret").hexdigest())
    assert corpus.refusal().code is ReasonCode.MANIFEST_PATH_ESCAPES


@pytest.mark.parametrize("through", ["link to the file", "link to its folder"])
def test_a_symbolic_link_out_of_the_folder_is_refused(
    corpus: Corpus, through: str
) -> None:
    outside = corpus.folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    name = "linked"
    if through == "link to the file":
        (corpus.folder / name).symlink_to(outside / "secret.txt")
    else:
        (corpus.folder / name).symlink_to(outside)
        name = "linked/secret.txt"
    corpus.entries[0].update(file=name, sha256=hashlib.sha256(b"secret").hexdigest())
    refused = corpus.refusal()
    assert refused.code is ReasonCode.MANIFEST_PATH_ESCAPES
    assert "symbolic link" in refused.message


def test_a_link_inside_the_folder_and_a_linked_folder_itself_are_allowed(
    corpus: Corpus,
) -> None:
    (corpus.folder / "alias.txt").symlink_to("train.txt")
    corpus.entries[0].update(file="alias.txt")
    linked = corpus.folder.parent / "elsewhere"
    linked.symlink_to(corpus.folder)
    corpus.folder = linked
    assert corpus.load()[0].data == b"train"


def test_a_sibling_folder_whose_name_begins_alike_is_outside(corpus: Corpus) -> None:
    sibling = corpus.folder.parent / "corpus-of-others"
    sibling.mkdir()
    (sibling / "x.txt").write_bytes(b"x")
    (corpus.folder / "x.txt").symlink_to(sibling / "x.txt")
    corpus.entries[0].update(file="x.txt", sha256=hashlib.sha256(b"x").hexdigest())
    assert corpus.refusal().code is ReasonCode.MANIFEST_PATH_ESCAPES


def test_a_document_of_any_length_is_read_when_no_context_is_given(
    corpus: Corpus,
) -> None:
    corpus.fill(0, b"x" * 100_000)
    assert len(corpus.load(context=None)[0].data) == 100_000


def test_a_document_that_fills_the_context_is_accepted(corpus: Corpus) -> None:
    corpus.fill(0, b"x" * 11)
    assert corpus.load()[0].data == b"x" * 11


@given(data=st.binary(max_size=16))
@example(data=b"\xef\xbb\xbfa")
@example(data=b"\xed\xb0\x80")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_document_is_accepted_exactly_when_it_fits_and_is_utf8(
    corpus: Corpus, data: bytes
) -> None:
    """Against the three rules spelled once more: not empty, at most 11 bytes, UTF-8."""
    corpus.fill(0, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and len(data) <= 11:
        assert corpus.load()[0].data == data
    else:
        assert corpus.refusal().code in {
            ReasonCode.DOCUMENT_EMPTY,
            ReasonCode.DOCUMENT_OVERLONG,
            ReasonCode.DOCUMENT_NOT_UTF8,
        }


@given(file=st.text(min_size=1, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_path_is_refused_with_a_reason_and_never_crashes(
    corpus: Corpus, file: str
) -> None:
    corpus.entries[0].update(file=file + "-no-such-file")
    assert corpus.refusal().code in {
        ReasonCode.MANIFEST_PATH_ESCAPES,
        ReasonCode.DOCUMENT_MISSING,
        ReasonCode.DOCUMENT_UNREADABLE,
    }


def test_a_thousand_documents_are_read_within_two_seconds(corpus: Corpus) -> None:
    for number in range(1000):
        data = b"text %d" % number
        corpus.entries.append(
            corpus.entries[0]
            | {
                "id": f"d{number}",
                "file": f"d{number}.txt",
                "group": f"g{number}",
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
        (corpus.folder / f"d{number}.txt").write_bytes(data)
    # Of this process, so that nothing else on the machine counts.
    started = time.process_time()
    assert len(corpus.load()) == 1003
    assert time.process_time() - started < 2.0


def test_everything_that_is_wrong_with_a_corpus_is_named_at_once(
    corpus: Corpus,
) -> None:
    """A user with three bad documents learns it in one run, not in three."""
    corpus.fill(0, b"x" * 12)
    corpus.fill(1, b"abc\xff")
    corpus.entries[2].update(colour="red", sha256="abc")
    refused = corpus.refusal()
    assert refused.code is ReasonCode.MANIFEST_UNKNOWN_FIELD
    assert refused.fields == (
        "entries.2.colour",
        "entries.2.sha256",
        "entries.0.size",
        "entries.1.encoding",
    )
    assert refused.message.count("; besides, ") == 3
    for words in ("'colour'", "'abc'", "has 12 bytes", "byte offset 3"):
        assert words in refused.message


def test_a_corpus_of_many_bad_documents_is_one_short_sentence(corpus: Corpus) -> None:
    first = corpus.entries[0]
    corpus.entries += [
        first
        | {"id": f"d{i}", "file": f"{i}.txt", "group": f"{i}", "sha256": f"{i:064}"}
        for i in range(40)
    ]
    refused = corpus.refusal()
    assert len(refused.fields) == 40
    assert refused.message.count("does not exist") == 5
    assert refused.message.endswith("; and 35 more")
