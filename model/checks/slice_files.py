"""What the controllers of a slice left, by gang and controller; nothing is judged here.

A file that is not there is a controller that said nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model.checks.rows import Row
from model.checks.target_result import read_json
from model.target_result import GANGS, OBSERVED, part
from model.target_signs import PLATFORMS, signs_of


class SliceFiles:
    """The files of as many controllers as there have to be."""

    def __init__(self, folder: Path, count: int) -> None:
        """Reads what each controller answered to its probes.

        Args:
            folder: The result.
            count: Controllers that there have to be.
        """
        self.folder = folder
        self.count = count
        self.observed = {
            place: self.json(*place, f"artifacts/{OBSERVED}") | {"hosts": self.count}
            for place in self.places()
            if (folder / part(*place) / "artifacts" / OBSERVED).is_file()
        }
        self.found = {
            place: signs_of(each, PLATFORMS[each["platform"]])
            for place, each in self.observed.items()
        }

    def places(self) -> list[tuple[str, int]]:
        """Returns each gang with each of its controllers."""
        return [(gang, number) for gang in GANGS for number in range(self.count)]

    def json(self, gang: str, number: int, name: str, absent: Any = None) -> Any:
        """Returns what a JSON file of a controller holds; `absent` for no file."""
        path = self.folder / part(gang, number) / name
        return read_json(path) if path.is_file() else ({} if absent is None else absent)

    def rows(self, gang: str, number: int, table: str, label: str) -> list[Row]:
        """Returns the rows that a controller wrote about a training."""
        found = self.json(gang, number, f"records/{table}.json", [])
        return [row for row in found if row["label"] == label]

    def states(self, gang: str, number: int, label: str) -> dict[int, str]:
        """Returns the digest of what a controller held after each update."""
        made = self.rows(gang, number, "controller_updates", label)
        return {row["update"]: row["state_sha256"] for row in made}

    def process(self, gang: str, number: int) -> tuple[str, int]:
        """Returns host and process id of a controller, as it says."""
        observed = self.observed.get((gang, number), {})
        return observed.get("host", ""), observed.get("process_id", 0)

    def restored(self) -> dict[int, int]:
        """Returns which update each controller went on from; -1 where it says none."""
        found = dict.fromkeys(range(self.count), -1)
        for number in found:
            for event in self.json(GANGS[-1], number, "end.json").get("events", []):
                if event.get("event") == "restored":
                    found[number] = int(event["update"])
        return found
