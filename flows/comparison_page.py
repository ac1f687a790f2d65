"""The comparison of a run as an artifact in Prefect's UI, one key a preset."""

from typing import Any

from prefect.artifacts import create_markdown_artifact

from flows.display import printable, shortened
from flows.published import NOT_PUBLISHED, is_watched, key_of
from flows.reading import Connection, Row, view_rows

SHOWN = 20
SHOWN_VIEWS = ("comparison_stages", "comparison_changes", "comparison_findings")


def publish_comparison(connection: Connection, about: Row) -> str:
    """Publishes a comparison under the key of its preset, which keeps the history.

    Args:
        connection: The warehouse with the compared runs.
        about: The one row of the view `comparison`.

    Returns:
        One sentence about what went wrong, empty where it was published.
    """
    if not is_watched():
        return ""
    try:
        create_markdown_artifact(
            markdown=comparison_markdown(connection, about),
            key=key_of(about["preset"], "comparison"),
            description=about["sentence"],
        )
    except NOT_PUBLISHED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return f" The comparison could not be published ({reason[:200]})."
    return ""


def comparison_markdown(connection: Connection, about: Row) -> str:
    """Returns a comparison as Markdown: the sentence, then what changed and differs."""
    stages, changes, findings = (view_rows(connection, view) for view in SHOWN_VIEWS)
    parts = [about["sentence"]]
    for title, rows, names in (
        ("What was changed", changes, ("kind", "name", "before_value", "after_value")),
        ("Stages", stages, ("stage", "result", "after_state", "after_reason")),
        (
            "What differs",
            findings,
            ("result", "place", "before_value", "after_value"),
        ),
    ):
        if rows:
            parts += [f"### {title}", _table(rows[:SHOWN], names)]
        if len(rows) > SHOWN:
            command = f"harness compare {about['after_run_id']} --json"
            parts.append(f"… and {len(rows) - SHOWN} more: `{command}`")
    return "\n\n".join(_plain(part) for part in parts)


def _table(rows: list[Row], names: tuple[str, ...]) -> str:
    lines = [names, ["---"] * len(names), *[[row[n] for n in names] for row in rows]]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: Any) -> str:
    text = "" if value is None else shortened(str(value)).replace("\n", " ")
    # Evidence may hold anything; a cell stays a cell.
    return text[:120].replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    return printable(text)
