"""Runs a program on a disk that is full, or in a folder that cannot be written.

Root ignores mode bits, so both are real: a small file system in memory, mounted in a
namespace that only this program and its children see and that ends with them.
"""

import subprocess
from pathlib import Path
from typing import Literal

Fault = Literal["full_disk", "read_only_folder"]
FAULTS: tuple[Fault, ...] = ("full_disk", "read_only_folder")
SECONDS_TO_TRY = 30
# Beside what is copied in: room for one more checkpoint and for the file that takes it.
ROOM_BYTES = 16 * 2**20
# A write has to fail in its middle, not before its first byte.
LEFT_BYTES = 64 * 2**10

SCRIPT = """
set -e
mount -t tmpfs -o size="$SIZE" tmpfs "$PLACE"
cp -R "$SOURCE" "$PLACE/checkpoints"
if [ "$FAULT" = full_disk ]; then
  cat /dev/zero > "$PLACE/filler" 2> /dev/null || true
  truncate -s "-$LEFT" "$PLACE/filler"
else
  mount -o remount,ro "$PLACE"
fi
status=0
"$@" || status=$?
cp -R "$PLACE/checkpoints" "$KEPT"
exit "$status"
"""


def enter_namespace() -> tuple[str, ...] | None:
    """Returns the command that starts another one with mounts of its own.

    None when this machine does not let us, for instance in a plain container.
    """
    for command in (
        ("unshare", "--mount", "--propagation", "private"),
        ("unshare", "--mount", "--propagation", "private", "--map-root-user"),
    ):
        trial = [*command, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/tmp"]
        try:
            subprocess.run(
                trial, check=True, capture_output=True, timeout=SECONDS_TO_TRY
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command
    return None


def faulty_place(
    enter: tuple[str, ...], fault: Fault, source: Path, place: Path, kept: Path
) -> tuple[str, ...]:
    """Returns the command that starts a program with a faulty folder of checkpoints.

    Args:
        enter: What `enter_namespace` returned.
        fault: What is wrong with it.
        source: Checkpoints that lie in it from the start.
        place: Empty folder; the program finds them under `place/checkpoints`.
        kept: Where what is left is copied to when the program has ended.
    """
    held = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    settings = {
        "SIZE": str(2 * held + ROOM_BYTES),
        "LEFT": str(LEFT_BYTES),
        "FAULT": fault,
        "SOURCE": str(source),
        "PLACE": str(place),
        "KEPT": str(kept),
    }
    assigned = (f"{name}={value}" for name, value in settings.items())
    return (*enter, "env", *assigned, "sh", "-c", SCRIPT, "sh")
