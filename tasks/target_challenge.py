"""What a launcher demands of every host that takes part: an answer to this occasion.

A nonce is given out once, so that no answer of an earlier day passes for one of today;
the digest is of the code that the launcher would run itself, so that a host with other
code under the same names is found out.
"""

import dataclasses
import secrets
import time
from pathlib import Path

from model.folders import source_sha256
from tasks.program_environment import root_of
from warehouse.nonces import remember_drawn
from warehouse.runs import utc_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Challenge:
    """What a host has to answer."""

    nonce: str
    """Number of this occasion, 32 hexadecimal digits."""
    code_sha256: str
    """Digest of the source of the package `model`."""


def new_challenge() -> Challenge:
    """Returns a challenge that nobody has seen before."""
    return Challenge(nonce=secrets.token_hex(16), code_sha256=code_sha256())


def drawn_nonce(root: Path) -> str:
    """Returns a nonce that nobody has seen before, and that a store remembers.

    Args:
        root: Folder of the store that takes in what answers it.
    """
    nonce = new_challenge().nonce
    remember_drawn(root, nonce, utc_text(time.time_ns()))
    return nonce


def code_sha256() -> str:
    """Returns the digest of the code that this launcher would run on a host."""
    return source_sha256(root_of("model") / "model")
