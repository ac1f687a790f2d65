"""The result of a slice: what each controller of each gang left, under one manifest.

It has the form of what one host leaves, so that one program judges both: a folder of
files, each named by its digest, and written by nobody who knows a limit.
"""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.target_result import GANGS, part, write_manifest
from tasks.gang import GangRun
from tasks.run_program import ProgramRun

END = "end.json"
"""How a controller ended, as its launcher knows it."""
COPIED = ("records", "artifacts", "program.json", "refused.json")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SliceResult:
    """What came of an occasion, still in the folders of its gangs."""

    gangs: Mapping[str, GangRun]
    """Each gang by its name."""
    described: Mapping[str, Any]
    """What the manifest says beside the files."""
    files: Mapping[str, Path | bytes]
    """What all controllers read or wrote together, by name."""

    def write(self, folder: Path) -> None:
        """Writes all files and, last, the manifest over them.

        Args:
            folder: Where they go; it is empty.

        Raises:
            Refused: A file is too large.
        """
        for name, content in self.files.items():
            data = content.read_bytes() if isinstance(content, Path) else content
            (folder / name).write_bytes(data)
        for gang, run in self.gangs.items():
            for number, each in enumerate(run.runs):
                _copy(each, folder / part(gang, number))
        given = folder / "parameters.npz"
        made = folder / part(GANGS[0], 0) / "artifacts" / given.name
        if not given.exists():
            shutil.copyfile(made, given)
        counts = {len(run.runs) for run in self.gangs.values()}
        steps = {gang: _told(run) for gang, run in self.gangs.items()}
        write_manifest(
            folder,
            {
                **self.described,
                "controllers": max(counts),
                "steps": steps,
                "stopped_at": "",
                "stopped_because": "",
            },
        )


def _copy(run: ProgramRun, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in COPIED:
        source = run.out / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copyfile(source, folder / name)
    end = {
        "process_id": run.process_id,
        "return_code": run.return_code,
        "events": run.events,
    }
    (folder / END).write_text(json.dumps(end))


def _told(run: GangRun) -> dict[str, Any]:
    return {
        "cause": run.cause,
        "is_complete": run.is_complete,
        "duration_ns": run.ended_at_ns - run.started_at_ns,
    }
