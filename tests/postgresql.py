"""A PostgreSQL server of its own for a test, on a free port, with a password."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import postgresql_folder

USER, PASSWORD = "prefect", "pass-word"
# PostgreSQL refuses to run as root; Debian's package makes this user.
UNPRIVILEGED = "postgres"


@contextmanager
def running_postgresql(port: int) -> Iterator[str]:
    """Yields the address of a new, empty database as SQLAlchemy writes it."""
    folder = Path(tempfile.mkdtemp(prefix="text-harness-postgresql-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        data = folder / "data"
        _run("initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", "-E", "UTF8",
             "--pwfile", password)  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        _run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql+asyncpg://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            _run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(program: str, *arguments: object) -> None:
    folder = postgresql_folder()
    assert folder is not None
    command = [str(folder / program), *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["runuser", "-u", UNPRIVILEGED, "--", *command]
    subprocess.run(
        command,
        cwd="/",
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
