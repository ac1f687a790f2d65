"""Cuts The Devil's Dictionary into one document a definition, with a manifest.

Run it as ``python tests/data/devils_dictionary/cut.py FOLDER``: it reads ``source.txt``
beside it and writes ``manifest.json``, ``refused.json``, ``NOTICE.txt`` and a file a
definition under ``documents/`` into FOLDER. Committed is what it writes here; a test
holds that it writes the same again.

The rules:
    definition  from a headword at the beginning of a paragraph to the next one, without
                the blank lines behind it; its bytes are not touched otherwise.
    group       the headword, so that two definitions of one word share a split.
    split       groups ranked by the SHA-256 of seed and headword: the first tenth is
                held-out, the second validation, the rest training.
    refused     what is longer than 255 bytes, since BOS takes one of 256 tokens; and
                what stands twice word for word (the source repeats a passage).
"""

import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

SEED = 1911
CONTEXT_TOKENS = 256
SOURCE = Path(__file__).parent / "source.txt"
SOURCE_NAME = "Ambrose Bierce, The Devil's Dictionary (1911), Debian package dict-devil"
LICENSE = "public-domain"
HEADWORD = re.compile(
    # words in capitals, then what only stands behind a headword
    r"(?P<word>[A-Z][A-Z.'\- ]*[A-Z])"
    r"(?=\.?(?:,| n\.| \(| or [A-Z]{2}|$)|\.  |\?  )"
    # or one of the letters that have an entry of their own
    r"|(?P<letter>[A-Z])(?=, the | is | in | \()"
)
NOTICE_END = "aloysius@west.darkside.com"


def cut_definitions(text: str) -> list[tuple[str, str]]:
    """Returns headword and text of each definition, in the order of the dictionary."""
    definitions: list[tuple[str, list[str]]] = []
    is_paragraph_start = True
    body = text[: text.rindex("\n\n ")]  # without the index noise of the last line
    for line in body[body.index("ABASEMENT, n.") :].split("\n"):
        found = HEADWORD.match(line) if is_paragraph_start else None
        if found:
            definitions.append((found["word"] or found["letter"], []))
        definitions[-1][1].append(line)
        is_paragraph_start = not line.strip()
    return [(word, "\n".join(lines).rstrip()) for word, lines in definitions]


def split_of_groups(groups: set[str]) -> dict[str, str]:
    """Returns the split of each headword: a tenth, a tenth, the rest."""
    ranked = sorted(
        groups, key=lambda group: hashlib.sha256(f"{SEED}:{group}".encode()).hexdigest()
    )
    tenth = len(ranked) // 10
    return {
        group: "heldout"
        if place < tenth
        else ("validation" if place < 2 * tenth else "train")
        for place, group in enumerate(ranked)
    }


def write_corpus(folder: Path) -> None:
    """Writes documents, manifest, refusals and the notice into a folder."""
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    text = SOURCE.read_bytes().decode("utf-8")
    fitting, refused = [], []
    repeated: Counter[str] = Counter()
    for word, definition in cut_definitions(text):
        name = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")
        repeated[name] += 1
        if repeated[name] > 1:
            name = f"{name}-{repeated[name]}"
        data = definition.encode("utf-8")
        reason = _reason_to_refuse(data, [earlier for _, _, earlier in fitting])
        if reason:
            size = len(data)
            refused.append(
                {"id": name, "group": word, "document_bytes": size, "reason": reason}
            )
        else:
            fitting.append((name, word, data))
    splits = split_of_groups({word for _, word, _ in fitting})
    manifest = []
    for name, word, data in fitting:
        file = f"documents/{name}.txt"
        (folder / file).write_bytes(data)
        manifest.append(
            {
                "id": name,
                "file": file,
                "split": splits[word],
                "group": word,
                "license": LICENSE,
                "source": SOURCE_NAME,
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
    _write_json(folder / "manifest.json", manifest)
    _write_json(
        folder / "refused.json",
        {
            "context_tokens": CONTEXT_TOKENS,
            "allowed_bytes": CONTEXT_TOKENS - 1,
            "definitions": refused,
        },
    )
    notice = text[: text.index(NOTICE_END) + len(NOTICE_END)] + "\n"
    (folder / "NOTICE.txt").write_bytes(notice.encode("utf-8"))


def _reason_to_refuse(data: bytes, earlier: list[bytes]) -> str:
    if len(data) >= CONTEXT_TOKENS:
        return "document_overlong"
    return "duplicate_content" if data in earlier else ""


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give one folder: python tests/data/devils_dictionary/cut.py FOLDER")
    write_corpus(Path(sys.argv[1]))
