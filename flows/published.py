"""What a run leaves on Prefect's pages: parts of its report under keys that stay.

A key is the preset and the name of the part, so the page of a key is the history of
that part over runs. All of it can be made again from the evidence, and nothing of it is
evidence: what cannot be published is said and fails no run. A private server has no
pages, and gets nothing.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from prefect.artifacts import create_markdown_artifact
from prefect.exceptions import PrefectException
from prefect.logging import get_run_logger

from flows.local_server import PRIVATE
from flows.reading import Row, selected_run
from warehouse.errors import WarehouseError

# What draws is loaded where something is drawn: a run whose pages nobody can open, and
# the start of every other one, shall not wait for it.
if TYPE_CHECKING:
    from warehouse.report_rows import ReportRows

KEPT_REPORTS = 50
REPORT = "report"
NOT_PUBLISHED = (
    *(httpx.HTTPError, PrefectException, RuntimeError),
    *(OSError, ValueError, WarehouseError),
)
"""What goes wrong with a server or a folder; the evidence is in the store by then."""


def is_watched() -> bool:
    """Returns whether the pages of the server are for somebody to look at."""
    return os.environ.get(PRIVATE) != "1"


def key_of(preset: str, part: str) -> str:
    """Returns the key of an artifact, such as "fixture-tuned-learning-curve"."""
    return re.sub(r"[^a-z0-9]+", "-", f"{preset}-{part}".lower()).strip("-")


def publish(connection: Any, root: Path) -> str:
    """Publishes the parts of the selected run's report; returns what went wrong.

    Args:
        connection: The warehouse with the run selected.
        root: Folder of the store; the report is written beside it.

    Returns:
        One sentence, empty where everything was published.
    """
    from warehouse.report_parts import report_parts
    from warehouse.report_rows import ReportRows

    run = selected_run(connection)
    try:
        shown = ReportRows(connection)
        path = write_beside(shown, root, run["run_id"])
        for part in report_parts(shown):
            publish_part(run, part.name, part.text)
        publish_part(run, REPORT, _report_text(run, path))
    except NOT_PUBLISHED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        get_run_logger().warning("Not everything could be published: %s", reason)
        return f" Not everything could be published ({reason[:200]})."
    return ""


def publish_part(run: Row, part: str, text: str) -> None:
    """Publishes one page of Markdown under the key of a run's preset and a part.

    Args:
        run: Row of the view `runs`.
        part: Name of the part, such as "verdicts".
        text: The page.
    """
    create_markdown_artifact(
        key=key_of(run["preset"], part),
        markdown=text,
        description=f"{part.replace('-', ' ').capitalize()} of run {run['run_id']}",
    )


def write_beside(shown: "ReportRows", root: Path, run_id: str) -> Path:
    """Writes the report as a page beside the store and returns its path.

    Not into the store, whose files are evidence. The newest ones are kept; any other
    can be written again by `harness report`.
    """
    from warehouse.report import write_report

    folder = root.with_name(f"{root.name}-reports")
    path = folder / f"{run_id}.html"
    write_report(shown, run_id, "html", path)
    for old in sorted(folder.glob("*.html"))[:-KEPT_REPORTS]:
        old.unlink(missing_ok=True)
    return path


def _report_text(run: Row, path: Path) -> str:
    return (
        f"The page with all rows and pictures is a file on the machine of the worker "
        f"({run['host']}); a browser opens no file from here, so copy the address:\n\n"
        f"```\n{path.as_uri()}\n```\n\n"
        f"`harness report {run['run_id']}` writes it again, wherever the store is.\n"
    )
