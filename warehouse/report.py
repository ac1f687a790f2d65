"""Writes what a reviewer reads: one page of verdicts, pictures and the rows below them.

The page only shows what views say: nothing is judged or computed here, so whatever it
prints can be asked again with `harness sql "select * from <view>"`. Every value may be
hostile (prompts, file names, messages come from outside) and goes through Jinja's
automatic escaping.
"""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import jinja2
import markupsafe

from warehouse.errors import WarehouseError
from warehouse.figure_colours import PALETTE_CSS, standalone
from warehouse.report_rows import VIEWS, ReportRows, Row
from warehouse.report_sections import DAMAGE, REQUIREMENTS, SECTIONS, TASK_TITLES

Format = Literal["html", "markdown"]

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE_NAMES: Mapping[str, str] = {
    "html": "report.html.j2",
    "markdown": "report.md.j2",
}

SHOWN_REQUIREMENTS = 40


def write_report(
    shown: ReportRows,
    run_id: str,
    format: Format,
    path: Path,
) -> list[Path]:
    """Writes the report of one run and returns the files, the page first.

    Args:
        shown: rows and pictures of this run.
        run_id: id of the run, shown as the title.
        format: "html" is one self-contained file; "markdown" is a page with its
            pictures as SVG files in a folder beside it.
        path: where the page goes; its folder is made.

    Raises:
        WarehouseError: the format is unknown or the file cannot be written.
    """
    if format not in TEMPLATE_NAMES:
        raise WarehouseError(
            f"The report format {format!r} is unknown; allowed are "
            f"{' and '.join(TEMPLATE_NAMES)}."
        )
    rows = {name: shown.of(view) for name, view in VIEWS.items()}
    run = next(iter(shown.of("selected_run")), {})
    folder = path.with_name(f"{path.stem}-figures")
    page = environment().get_template(TEMPLATE_NAMES[format])
    text = page.render(
        run_id=run_id,
        run=run,
        overhead=_sentence_of_overhead(shown, run),
        tasks=rows["tasks"],
        claims=_claims(rows["claims"], rows["requirements"]),
        requirement_columns=REQUIREMENTS,
        titles=TASK_TITLES,
        damage=DAMAGE,
        damage_rows=shown.of(DAMAGE.view),
        sections=[(section, shown.of(section.view)) for section in SECTIONS],
        pictures=shown.pictures,
        figures=folder.name,
        palette=markupsafe.Markup(PALETTE_CSS),
    )
    files = {path: text}
    if format == "markdown":
        for picture in shown.pictures:
            files[folder / f"{picture.name}.svg"] = standalone(picture.svg)
    try:
        for file, content in files.items():
            _write(file, content)
    except OSError as error:
        raise WarehouseError(
            f"The report cannot be written to {str(path)!r} ({error.strerror}); "
            "name a writable place."
        ) from error
    return list(files)


def _sentence_of_overhead(shown: ReportRows, run: Row) -> str:
    """Returns where the time of a run went, in one sentence; "" without a run."""
    rows = shown.of("run_overhead") if run else []
    return next((row["sentence"] for row in rows if row["run_id"] == run["run_id"]), "")


def _claims(claims: Sequence[Row], requirements: Sequence[Row]) -> list[Row]:
    """Returns each claim with the rows to show; the first ones are the nearest."""
    by_claim: dict[str, list[Row]] = {}
    for row in requirements:
        by_claim.setdefault(row["claim"], []).append(row)
    return [
        claim
        | {
            "shown": by_claim.get(claim["claim"], [])[:SHOWN_REQUIREMENTS],
            "hidden": max(
                0, len(by_claim.get(claim["claim"], [])) - SHOWN_REQUIREMENTS
            ),
        }
        for claim in claims
    ]


def environment() -> jinja2.Environment:
    """Returns the templates with the filters that print values."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        value=_value,
        time=_time,
        seconds=_seconds,
        mebibytes=_mebibytes,
        cell=_cell,
        drawing=_drawing,
    )
    return environment


def _value(value: object) -> str:
    """Returns a measured value as text: integers in full, reals to six digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # Whole numbers in full, and no "-0" for a margin that is used up.
        is_whole = value.is_integer() and abs(value) < 2**53
        return str(int(value)) if is_whole else f"{value:.6g}"
    return str(value)


def _time(instant: str | None) -> str:
    """Returns an ISO 8601 instant in UTC for people, to the second."""
    return "–" if instant is None else f"{instant[:10]} {instant[11:19]} UTC"


def _seconds(duration_ns: int | None) -> str:
    if duration_ns is None:
        return "–"
    seconds = duration_ns / 1e9
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{duration_ns} ns"


def _mebibytes(count: int | None) -> str:
    return "–" if count is None else f"{count / 2**20:,.0f} MiB"


def _cell(value: object) -> markupsafe.Markup:
    """Returns a value for a Markdown table: one line, nothing that Markdown reads."""
    text = " ".join(str(markupsafe.escape(_value(value))).split())
    return markupsafe.Markup(re.sub(r"([\\`*_\[\]|~])", r"\\\1", text))


def _drawing(svg: str) -> markupsafe.Markup:
    # Matplotlib wrote this element and escaped every text in it.
    return markupsafe.Markup(svg)


def _write(path: Path, text: str) -> None:
    """Writes whole or not at all: a reader never opens half a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
