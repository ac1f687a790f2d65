"""Token files of the fixture corpus, made in this process for tests of programs."""

import json
from pathlib import Path

import numpy as np

from model.config import ModelConfig, fixture_manifest
from model.digests import array_sha256
from model.documents import load_text_manifest
from model.tokenizer import describe, describe_preprocessing, document_tokens

SPLITS = ("train", "validation", "heldout")


def write_token_files(folder: Path, model: ModelConfig) -> tuple[Path, Path]:
    """Writes what `tokenize_corpus` keeps, and returns both paths."""
    documents = load_text_manifest(fixture_manifest())
    tokens, ids = {}, {}
    for split in SPLITS:
        own = [each for each in documents if each.split == split]
        rows = [document_tokens(each.data, model.context_tokens) for each in own]
        tokens[split] = np.stack(rows)
        ids[split] = [each.document_id for each in own]
    paths = folder / "tokens.npz", folder / "corpus.json"
    np.savez(paths[0], **tokens)
    description = {
        "splits": ids,
        "tokens_sha256": {split: array_sha256(x) for split, x in tokens.items()},
        "split_sha256": "d",
        "tokenizer": describe(),
        "preprocessing": describe_preprocessing(model.context_tokens),
    }
    paths[1].write_text(json.dumps(description))
    return paths
