"""Reports the numerics fingerprint of a fresh process, before anything is computed.

A flow starts with it: the fingerprint is part of every key and of the subject, and
neither flow nor tasks may import JAX to ask for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model import runtime
from model.programs import entry


def main(request: dict[str, Any], out: Path) -> None:
    """Writes `runtime.json`, the fingerprint by field.

    Args:
        request: Nothing but the result folder.
        out: Result folder.
    """
    (out / "runtime.json").write_text(json.dumps(runtime.describe()), "utf-8")


if __name__ == "__main__":
    entry.run(main)
