"""Faults by what they replace: a function, a view, or a file that a scene has made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults import Fault
from tests.faults.planting import rewritten, swapped


def of_function(
    group: str,
    name: str,
    scene: str,
    claim: str,
    replaces: str,
    summary: str,
    source: str,
    make: Callable[[Any], Any],
) -> Fault:
    """Returns a fault that stands in the place of a function or method.

    Args:
        group: One of `GROUPS`.
        name: The field's name of it.
        scene: Scene in which it is tried.
        claim: Claim or promise that has to catch it.
        replaces: Where the function is defined, as `planting.swapped` takes it.
        summary: One sentence: what happens instead of what.
        source: Public report.
        make: Takes the function and returns the faulty one.
    """
    return Fault(
        name=name,
        group=group,
        summary=summary,
        source=source,
        claim=claim,
        replaces=replaces,
        scene=scene,
        component=swapped(replaces, make),
    )


def of_view(
    group: str,
    name: str,
    scene: str,
    claim: str,
    view: str,
    summary: str,
    source: str,
    *changes: tuple[str, str],
) -> Fault:
    """Returns a fault that stands in the place of a view of the review.

    Args:
        group: One of `GROUPS`.
        name: The field's name of it.
        scene: Scene in which it is tried.
        claim: Claim or promise that has to catch it.
        view: Name of the view.
        summary: One sentence: what happens instead of what.
        source: Public report.
        changes: As `planting.rewritten` takes them.
    """
    return Fault(
        name=name,
        group=group,
        summary=summary,
        source=source,
        claim=claim,
        replaces=f"warehouse/views/review/{view}.sql",
        scene=scene,
        component=rewritten(view, *changes),
    )


def of_file(
    group: str,
    name: str,
    scene: str,
    claim: str,
    replaces: str,
    summary: str,
    source: str,
    change: Callable[[Any], Any],
) -> Fault:
    """Returns a fault that stands in the place of a file that a scene has made.

    Args:
        group: One of `GROUPS`.
        name: The field's name of it.
        scene: Scene in which it is tried.
        claim: Claim or promise that has to catch it.
        replaces: Which file it is.
        summary: One sentence: what happens instead of what.
        source: Public report.
        change: Takes what the scene hands out, and changes it.
    """
    return Fault(
        name=name,
        group=group,
        summary=summary,
        source=source,
        claim=claim,
        replaces=replaces,
        scene=scene,
        file=change,
    )
