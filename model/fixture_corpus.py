"""The draw of the fixture corpus: short palindromes whose grammar is known.

A language of strings ``p|reverse(p)`` over six letters has an entropy that can be
written down, so a loss can be held against what a perfect model would reach. The draw
is committed as files with a manifest; this generator is its proof, not its source at
run time.

The rule: the source group of a prefix p is the unordered pair {p, reverse(p)}. Groups
of each prefix length are ranked by the SHA-256 of seed and group (no library's random
numbers, so the draw never changes with a version), and dealt to held-out, validation
and training in this order. A group gives exactly one document, whose direction the
same digest decides: of the 21 groups of length 2 all are needed (9 + 4 + 8). The group
of the diagnostic prompt ``abc|`` is never dealt, and the prompts of the three
demonstrations are set as the first held-out documents, in the direction of the prompt.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from model.manifest import SPLITS, ManifestEntry, splits_sha256

LETTERS = "abcdef"
SEED = 20261129
PREFIX_LENGTHS = (2, 3, 4, 5)
DOCUMENTS = {
    "heldout": {2: 9, 3: 10, 4: 7, 5: 6},
    "validation": {2: 4, 3: 10, 4: 10, 5: 8},
    "train": {2: 8, 3: 28, 4: 30, 5: 30},
}
DEMONSTRATION_PREFIXES = ("dbea", "aaed", "adeb")
DIAGNOSTIC_PREFIX = "abc"


def document_text(prefix: str) -> str:
    """Returns the document of a prefix: the prefix, a bar, the prefix reversed."""
    return f"{prefix}|{prefix[::-1]}"


def source_group(prefix: str) -> str:
    """Returns the name of the unordered pair of a prefix and its reversal."""
    return "/".join(sorted({prefix, prefix[::-1]}))


def draw_prefixes(seed: int = SEED) -> dict[str, list[str]]:
    """Returns the prefixes of each split in their order.

    Args:
        seed: Names the draw.

    Returns:
        Prefixes by split; 96 train, 32 validation, 32 heldout.
    """
    drawn: dict[str, list[str]] = {split: [] for split in DOCUMENTS}
    drawn["heldout"] += DEMONSTRATION_PREFIXES
    for length in PREFIX_LENGTHS:
        groups = _ranked_groups(seed, length)
        for split, counts in DOCUMENTS.items():
            pinned = sum(len(prefix) == length for prefix in drawn[split])
            for group in itertools.islice(groups, counts[length] - pinned):
                drawn[split].append(_direction(seed, group))
    return {
        split: sorted(prefixes, key=lambda prefix: _place(seed, prefix))
        for split, prefixes in drawn.items()
    }


def write_fixture_corpus(folder: Path, seed: int = SEED) -> Path:
    """Writes one file a document, ``manifest.json`` and ``draw.json`` into a folder.

    Args:
        folder: Made if absent.
        seed: Names the draw.

    Returns:
        The path of the manifest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prefixes = draw_prefixes(seed)
    entries = []
    for split in SPLITS:
        for number, prefix in enumerate(prefixes[split]):
            data = document_text(prefix).encode("ascii")
            name = f"{split}-{number:03d}"
            (folder / f"{name}.txt").write_bytes(data)
            entries.append(
                ManifestEntry(
                    id=name,
                    file=f"{name}.txt",
                    split=split,
                    group=source_group(prefix),
                    license="CC0-1.0",
                    source=f"model/fixture_corpus.py, seed {seed}",
                    sha256=hashlib.sha256(data).hexdigest(),
                )
            )
    draw = {"seed": seed, "splits_sha256": splits_sha256(entries)}
    (folder / "draw.json").write_text(json.dumps(draw, indent=1) + "\n", "utf-8")
    manifest = folder / "manifest.json"
    values = [vars(entry) for entry in entries]
    manifest.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    return manifest


def _digest(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}:{text}".encode("ascii")).hexdigest()


def _ranked_groups(seed: int, length: int) -> Iterator[str]:
    """Yields the groups of one prefix length that may be dealt, in drawn order."""
    kept_out = {
        source_group(prefix) for prefix in (*DEMONSTRATION_PREFIXES, DIAGNOSTIC_PREFIX)
    }
    words = map("".join, itertools.product(LETTERS, repeat=length))
    groups = {source_group(word) for word in words} - kept_out
    return iter(sorted(groups, key=lambda group: _digest(seed, group)))


def _direction(seed: int, group: str) -> str:
    """Returns the one string of a group that becomes a document."""
    words = group.split("/")
    return words[int(_digest(seed, f"direction {group}"), 16) % len(words)]


def _place(seed: int, prefix: str) -> tuple[int, str]:
    """Returns where a prefix stands in its split: demonstrations first."""
    if prefix in DEMONSTRATION_PREFIXES:
        return DEMONSTRATION_PREFIXES.index(prefix), ""
    return len(DEMONSTRATION_PREFIXES), _digest(seed, f"place {prefix}")
