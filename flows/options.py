"""The options that several commands share, with the words users read in `--help`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

DEFAULT_ROOT = Path("evidence")


def _folder(kind: Any, tokens: Sequence[Token]) -> Path:
    """Returns the folder that was named; an empty name would be the working folder."""
    (token,) = tokens
    if token.value:
        return Path(token.value)
    if token.source == "env":
        return DEFAULT_ROOT
    raise ValueError("it is empty; name a folder, or leave the option out")


Root = Annotated[
    Path,
    Parameter(
        name="--root",
        converter=_folder,
        env_var="HARNESS_ROOT",
        help="Folder of the evidence store.",
    ),
]
Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative=(),
        help="Print one JSON document and nothing else.",
    ),
]
Run = Annotated[str, Parameter(help="A run: its id, the beginning of it, or 'latest'.")]


def root_option(root: Path) -> str:
    """Returns what a suggested command needs to find the same store."""
    return "" if root == DEFAULT_ROOT else f" --root {shlex.quote(str(root))}"
