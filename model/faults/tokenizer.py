"""Faults of documents and tokens: what is read, what it becomes, and which split."""

from __future__ import annotations

import hashlib
import itertools
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from model.faults import INITIALIZATIONS, Fault
from model.refusal import ReasonCode, Refused
from model.tokenizer import BOS, EOS, PAD

GROUP = "tokenizer"
fault = partial(Fault, group=GROUP, stages=("tokenize_corpus",))
PADDED_TOKENS = 512


def _stops_at_end(original: Callable[..., bytes]) -> Callable[..., Any]:
    def decode(tokens: Iterable[int]) -> bytes:
        return original(itertools.takewhile(lambda token: token != EOS, tokens))

    return decode


def _newlines_translated(original: Callable[..., Any]) -> Callable[..., Any]:
    def read_document(*arguments: Any) -> bytes:
        data = original(*arguments)
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    return read_document


def _normalized(original: Callable[[bytes], np.ndarray]) -> Any:
    def encode(data: bytes) -> np.ndarray:
        text = data.decode("utf-8", "surrogateescape")
        composed = unicodedata.normalize("NFC", text)
        return original(composed.encode("utf-8", "surrogateescape"))

    return encode


def _invalid_replaced(original: Callable[[bytes], np.ndarray]) -> Any:
    return lambda data: original(data.decode("utf-8", "replace").encode())


def _token_by_token(original: Callable[[Iterable[int]], str]) -> Any:
    return lambda tokens: "".join(original([token]) for token in tokens)


def _offset_two(original: Callable[[bytes], np.ndarray]) -> Any:
    return lambda data: original(data) - np.int32(1)


def _two_begins(original: Callable[..., np.ndarray]) -> Any:
    def document_tokens(data: bytes, context_tokens: int, **named: Any) -> np.ndarray:
        row = original(data, context_tokens, **named)
        return np.concatenate([[BOS], row[:-1]]).astype(np.int32)

    return document_tokens


def _no_length_check(original: Callable[..., None]) -> Callable[..., None]:
    return lambda *arguments, **named: None


def _end_is_padding(original: Callable[..., np.ndarray]) -> Any:
    def document_tokens(data: bytes, context_tokens: int, **named: Any) -> np.ndarray:
        row = original(data, context_tokens, **named)
        return np.where(row == EOS, np.int32(PAD), row)

    return document_tokens


def _without(code: ReasonCode) -> Callable[[Any], Any]:
    """Returns what lets one kind of overlap pass."""

    def replacement(original: Callable[..., Iterator[Refused]]) -> Any:
        def repeated(placed: Any) -> Iterator[Refused]:
            return (found for found in original(placed) if found.code != code)

        return repeated

    return replacement


def _names_only(original: Callable[..., str]) -> Callable[..., str]:
    def split_sha256(entries: Iterable[Any], split: str) -> str:
        rows = [[entry.id, entry.group] for entry in entries if entry.split == split]
        return hashlib.sha256(json.dumps([split, rows]).encode()).hexdigest()

    return split_sha256


def _name_is_enough(original: Callable[..., None]) -> Callable[..., None]:
    def check_settings(made_with: Any, context_tokens: int) -> None:
        if made_with["tokenizer"]["name"] != "bytes":
            original(made_with, context_tokens)

    return check_settings


def _vocabulary_padded(original: Callable[..., Any]) -> Any:
    return lambda: original() | {"vocabulary_tokens": PADDED_TOKENS}


FAULTS = (
    fault(
        name="newline-translation-on-read",
        summary="Documents are read in text mode, so that every line ends in LF.",
        source="pywr/pywr#536",
        claim="1.1",
        replaces="model.documents._read_document",
        replacement=_newlines_translated,
    ),
    fault(
        name="unicode-normalised-before-encode",
        summary="Text is composed (NFC) before it becomes tokens.",
        source="ggml-org/llama.cpp#5496",
        claim="1.1",
        replaces="model.tokenizer.encode",
        replacement=_normalized,
    ),
    fault(
        name="invalid-bytes-replaced-in-encode",
        summary="Bytes that are no UTF-8 become U+FFFD before they become tokens.",
        source="antonellof/ferrox#124",
        claim="1.1",
        replaces="model.tokenizer.encode",
        replacement=_invalid_replaced,
    ),
    fault(
        name="byte-offset-two",
        summary="A byte is token byte + 2, so that byte 0 is the end of a document.",
        source="ggml-org/llama.cpp#7476",
        claim="1.1",
        replaces="model.tokenizer.encode",
        replacement=_offset_two,
    ),
    fault(
        name="decoding-stops-at-the-end-token",
        summary="What stands behind an end token becomes no bytes.",
        source="EleutherAI/lm-evaluation-harness#2512",
        claim="1.1",
        replaces="model.tokenizer.decode",
        replacement=_stops_at_end,
    ),
    fault(
        name="bos-doubled",
        summary="Encoder and batch builder both add the begin token.",
        source="sgl-project/sglang#888",
        claim="1.3",
        replaces="model.tokenizer.document_tokens",
        replacement=_two_begins,
    ),
    fault(
        name="eos-is-padding",
        summary="The end token has the id of padding, so that no document ever ends.",
        source="huggingface/trl#6357",
        claim="1.3",
        replaces="model.tokenizer.document_tokens",
        replacement=_end_is_padding,
    ),
    fault(
        name="overlong-document-truncated",
        summary="A document that is too long passes and is cut where the context ends.",
        source="EleutherAI/lm-evaluation-harness#2585",
        claim="1.4",
        replaces="model.tokenizer.check_length",
        replacement=_no_length_check,
    ),
    fault(
        name="duplicate-content-across-splits",
        summary="One text may stand in training and held-out under two ids.",
        source="openai/parameter-golf#2127",
        claim="1.5",
        replaces="model.manifest._repeated",
        replacement=_without(ReasonCode.CONTENT_IN_TWO_SPLITS),
    ),
    fault(
        name="source-group-across-splits",
        summary="Two texts of one source may stand in two splits.",
        source="TelecomsXChangeAPi/OpenTextShield#194",
        claim="1.5",
        replaces="model.manifest._repeated",
        replacement=_without(ReasonCode.GROUP_IN_TWO_SPLITS),
    ),
    fault(
        name="corpus-fingerprint-of-names-only",
        summary="The digest of a split is over ids and groups, and not over contents.",
        source="huggingface/datasets#4261",
        claim="1.5",
        replaces="model.manifest.split_sha256",
        replacement=_names_only,
    ),
    fault(
        name="golden-vector-not-compared",
        summary="Tokens of another table pass, because its name is the same.",
        source="ggml-org/llama.cpp#23252",
        claim="1.6",
        replaces="model.corpus._check_settings",
        replacement=_name_is_enough,
    ),
    fault(
        name="token-by-token-decode",
        summary="Each token becomes text alone, which breaks characters of many bytes.",
        source="exo-explore/exo#1691",
        claim="4.4",
        stages=("export_endpoints",),
        replaces="model.tokenizer.decode_text",
        replacement=_token_by_token,
    ),
    fault(
        name="vocabulary-padded-in-the-description",
        summary="The vocabulary is told as 512, to which a matrix might be padded.",
        source="ggml-org/llama.cpp#7111",
        claim="1.13",
        stages=("tokenize_corpus", "evaluate_heldout"),
        left_out=(INITIALIZATIONS,),
        replaces="model.tokenizer.describe",
        replacement=_vocabulary_padded,
    ),
)
