"""The parts of the report that are looked at one by one, each as a page of Markdown.

A page that collects runs shows one part of each, so that its history can be read. A
part has the words, rows and pictures of the report and nothing of its own.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warehouse.figure_colours import card
from warehouse.figures import Row
from warehouse.report import environment
from warehouse.report_pictures import Picture
from warehouse.report_rows import ReportRows
from warehouse.report_sections import COSTS, SECTIONS, VERDICTS, Section


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a report."""

    name: str
    """Name of lower-case letters and hyphens, such as "learning-curve"."""
    heading: str
    text: str
    """Markdown, with the picture inside it."""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    heading: str
    views: tuple[str, ...] = ()
    picture: str = ""


PLANS: Mapping[str, _Plan] = {
    "verdicts": _Plan(heading="Verdicts", views=tuple(s.view for s in VERDICTS)),
    "learning-curve": _Plan(heading="Learning curve", picture="learning_curve"),
    "recovery": _Plan(
        heading="Recovery",
        views=("recovery_summary", "recovery_certificates", "negative_controls"),
    ),
    "caches": _Plan(
        heading="Caches and precision",
        picture="cache_bytes",
        views=("logit_error_summary", "policies"),
    ),
    "latency": _Plan(heading="Latency", views=("timing_summary",)),
    "trace": _Plan(heading="Profiler trace", views=("trace_summary",)),
}
"""Name of each part to what it shows."""


def report_parts(shown: ReportRows) -> list[Part]:
    """Returns the parts of a run's report that have rows.

    Args:
        shown: Rows and pictures of this run.
    """
    pictures = {picture.name: picture for picture in shown.pictures}
    sections = {section.view: section for section in (*SECTIONS, *VERDICTS, COSTS)}
    parts = []
    for name, plan in PLANS.items():
        tables = [(sections[view], shown.of(view)) for view in plan.views]
        filled = [(section, rows) for section, rows in tables if rows]
        picture = pictures.get(plan.picture)
        if filled or picture:
            text = _page(picture, filled)
            parts.append(Part(name=name, heading=plan.heading, text=text))
    return parts


def _page(
    picture: Picture | None, sections: Sequence[tuple[Section, Sequence[Row]]]
) -> str:
    return (
        environment()
        .get_template("part.md.j2")
        .render(
            picture=picture,
            address=_data_address(picture.svg) if picture else "",
            sections=sections,
        )
    )


def _data_address(svg: str) -> str:
    """Returns an address that holds the picture itself; the page needs no file."""
    encoded = base64.b64encode(card(svg).encode()).decode()
    return f"data:image/svg+xml;base64,{encoded}"
