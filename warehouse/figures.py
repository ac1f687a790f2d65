"""Draws the report's pictures as SVG text; the one home of Matplotlib.

A picture must read on a dark and on a light page, so no colour is written into it
(`figure_colours`). Equal rows give equal bytes: the salt of the ids is the picture's
name and no date is written.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warehouse.figure_colours import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    RULE,
    inline,
)

Row = Mapping[str, Any]

WIDTH_INCHES = 5.0  # 360 points: about a phone's width, so text keeps its size there
WIDE_INCHES = 9.6  # of a page: each claim has a column, and names must not touch
FEWEST_COLUMNS = 50  # of that width, so that a square of a small drill stays one
FIRST_CLAIM = -3.4  # where the claim that noticed first is named, left of the squares
MAXIMUM_LABELLED_TOKENS = 24
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def learning_curve(points: Sequence[Row], levels: Sequence[Row]) -> str:
    """Returns the loss over the targets trained on, with the levels to compare with.

    Args:
        points: rows with `series` ("training", "validation"), cumulative_valid_targets
            (count), `nats_per_token` and, for training, `smoothed_nats_per_token`.
        levels: rows with `name` and `nats_per_token`: held-out loss, baseline, floor.
    """
    training = [row for row in points if row["series"] == "training"]
    validation = [row for row in points if row["series"] == "validation"]

    def draw(axes: Axes) -> None:
        updates = _columns(training, "nats_per_token")
        axes.plot(*updates, ".", markersize=2, alpha=0.35, color=BLUE)
        axes.plot(
            *_columns(training, "smoothed_nats_per_token"),
            color=BLUE,
            label="training, before the update, with dropout",
        )
        axes.plot(
            *_columns(validation, "nats_per_token"),
            color=ORANGE,
            marker="o",
            markersize=2.5,
            linewidth=1.2,
            label="validation",
        )
        _level_lines(axes, levels)
        axes.set_xlabel("valid target tokens trained on (cumulative)")
        axes.set_ylabel("loss (nats per token)")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _legend(axes, columns=2)

    return _picture("learning_curve", 4.0, draw)


def attention_head(weights: Sequence[Row]) -> str:
    """Returns the attention weights of one head as a map, darker for a larger weight.

    Args:
        weights: rows with `query`, `key` (positions), `query_label`, `key_label`
            (tokens as text) and `weight` in 0..1. Weights that are exactly 0 are left
            blank, so that a mask that leaks is seen. Beyond 24 positions none is drawn.
    """
    shown = [
        row
        for row in weights
        if max(row["query"], row["key"]) < MAXIMUM_LABELLED_TOKENS
    ]

    def draw(axes: Axes) -> None:
        keys = {row["key"]: row["key_label"] for row in shown}
        queries = {row["query"]: row["query_label"] for row in shown}
        for row in shown:
            _cell(axes, row, has_number=len(queries) <= 12)
        axes.set_xlim(-0.5, max(keys, default=0) + 0.5)
        axes.set_ylim(max(queries, default=0) + 0.5, -0.5)
        axes.set_aspect("equal")
        axes.set_xticks(list(keys), [_plain(text) for text in keys.values()])
        axes.set_yticks(list(queries), [_plain(text) for text in queries.values()])
        axes.tick_params(length=0)
        axes.set_xlabel("key: token looked at")
        axes.set_ylabel("query: token that looks")

    return _picture("attention_head", 4.4, draw)


def cache_bytes(arrays: Sequence[Row]) -> str:
    """Returns the bytes of a cache per policy, one bar, keys, values and scales apart.

    Args:
        arrays: rows with `cache_policy`, `part` ("keys", "values", "scales") and
            `part_bytes` (count).
    """

    def draw(axes: Axes) -> None:
        policies = list(dict.fromkeys(row["cache_policy"] for row in arrays))
        left = dict.fromkeys(policies, 0)
        for part, colour in (("keys", BLUE), ("values", ORANGE), ("scales", GREEN)):
            sizes = {
                row["cache_policy"]: row["part_bytes"]
                for row in arrays
                if row["part"] == part
            }
            widths = [sizes.get(policy, 0) for policy in policies]
            axes.barh(
                policies, widths, left=list(left.values()), color=colour, label=part
            )
            left = {p: left[p] + w for p, w in zip(policies, widths, strict=True)}
        for policy, total in left.items():
            axes.annotate(
                f"{total:,}", (total, policy), (4, 0), textcoords="offset points",
                va="center",
            )  # fmt: skip
        axes.invert_yaxis()
        axes.margins(x=0.14)
        axes.set_xlabel("cache of one request at full context (bytes)")
        axes.set_ylabel("cache policy")
        _legend(axes, columns=3)

    return _picture("cache_bytes", 2.3, draw)


def logit_errors(policies: Sequence[Row]) -> str:
    """Returns largest and mean logit error against FP32 per release policy.

    Args:
        policies: rows with `release_policy`, `largest_error` and `mean_error` (both
            absolute differences of logits, no unit).
    """

    def draw(axes: Axes) -> None:
        for offset, (column, colour) in enumerate(
            (("largest_error", ORANGE), ("mean_error", BLUE))
        ):
            for index, row in enumerate(policies):
                place = index + (offset - 0.5) * 0.38
                axes.barh(
                    place,
                    row[column],
                    height=0.34,
                    color=colour,
                    label=column.split("_")[0] if index == 0 else None,
                )
                axes.annotate(
                    f"{row[column]:.4f}", (row[column], place), (4, 0),
                    textcoords="offset points", va="center",
                )  # fmt: skip
        axes.set_yticks(
            range(len(policies)), [row["release_policy"] for row in policies]
        )
        axes.invert_yaxis()
        axes.margins(x=0.14)
        axes.set_xlabel("absolute difference of logits from FP32 (no unit)")
        axes.set_ylabel("release policy")
        _legend(axes, columns=2)

    return _picture("logit_errors", 1.3 + 0.55 * len(policies), draw)


def stage_durations(stages: Sequence[Row]) -> str:
    """Returns where the time went: programs and around them, one bar a stage.

    Args:
        stages: rows with `stage`, `program_seconds` and `around_seconds` (loading,
            recording and hashing around the programs).
    """

    def draw(axes: Axes) -> None:
        names = [row["stage"] for row in stages]
        programs = [row["program_seconds"] for row in stages]
        around = [row["around_seconds"] for row in stages]
        axes.barh(names, programs, color=BLUE, label="programs")
        axes.barh(names, around, left=programs, color=ORANGE, label="around them")
        for name, one, two in zip(names, programs, around, strict=True):
            axes.annotate(
                f"{one + two:.1f}", (one + two, name), (4, 0),
                textcoords="offset points", va="center",
            )  # fmt: skip
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel("wall-clock time of the execution (seconds)")
        _legend(axes, columns=2)

    return _picture("stage_durations", 3.0, draw)


def kill_matrix(drills: Sequence[Row], kills: Sequence[Row]) -> str:
    """Returns which claims noticed each planted fault, the faults by their stages.

    Args:
        drills: rows, in the order of the stages, with `stage`, `fault`, `claim` (that
            has to catch it), `first_claim` (that noticed first; may be empty),
            `is_benign` and `is_killed`.
        kills: rows with `fault`, `claim`, `is_own_claim` and `is_first`.
    """
    owed = {row["claim"] for row in drills if not row["is_benign"]}
    claims = sorted(owed | {row["claim"] for row in kills}, key=_claim_order)
    rows = _by_stage(drills)
    places = {row["fault"]: place for place, row in rows if row["fault"]}
    height = 1.1 + 0.125 * (max(places.values()) + 1)

    def draw(axes: Axes) -> None:
        for place, row in rows:
            _fault_label(axes, place, row)
            if not row["fault"]:
                axes.axhline(place, color=RULE, linewidth=0.6, zorder=0)
            if row["fault"] and not row["is_benign"]:
                column = claims.index(row["claim"])
                _square(axes, column, place, facecolor="none", edgecolor=ORANGE)
        for kill in kills:
            column, place = claims.index(kill["claim"]), places[kill["fault"]]
            colour = ORANGE if kill["is_own_claim"] else BLUE
            _square(axes, column, place, facecolor=colour, edgecolor="none")
            if kill["is_first"]:
                axes.plot(column, place, ".", markersize=2.2, color=INK)
        axes.set_xlim(FIRST_CLAIM, max(len(claims), FEWEST_COLUMNS) - 0.3)
        axes.set_ylim(max(places.values()) + 0.8, -1.8)
        columns = [FIRST_CLAIM + 0.5, *range(len(claims))]
        labels = ["noticed first", *claims]
        axes.set_xticks(columns, labels, rotation=90, fontsize=6)
        # Some two hundred rows lie between the two ends.
        axes.tick_params(length=0, top=True, labeltop=True, labelrotation=90)
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        _kill_legend(axes)

    return _picture("kill_matrix", height, draw, WIDE_INCHES)


def _claim_order(claim: str) -> tuple[int, int, str]:
    task, _, number = claim.partition(".")
    is_claim = task.isdigit() and number.isdigit()
    return (int(task), int(number), "") if is_claim else (99, 0, claim)


def _by_stage(drills: Sequence[Row]) -> list[tuple[int, Row]]:
    """Returns the faults by place, those of a stage below a row of its name.

    In a stage they stand by the claim that has to catch them; what is no fault is last.
    """
    rows: list[tuple[int, Row]] = []
    of_stage: dict[str, list[Row]] = {}
    for row in sorted(drills, key=lambda row: bool(row["is_benign"])):
        name = "no faults" if row["is_benign"] else row["stage"]
        of_stage.setdefault(name, []).append(row)
    place = -1
    for name, own in of_stage.items():
        rows.append((place, {"fault": "", "stage": name, "is_benign": False}))
        own.sort(key=lambda row: (_claim_order(row["claim"]), row["fault"]))
        rows += enumerate(own, place + 1)
        place += 1 + len(own)
    return rows


def _fault_label(axes: Axes, place: int, row: Row) -> None:
    name = _plain(row["fault"] or row["stage"])
    style: dict[str, Any] = (
        {"fontsize": 6} if row["fault"] else {"fontsize": 6.5, "weight": "bold"}
    )
    end = FIRST_CLAIM - 0.4
    axes.text(end, place, name, ha="right", va="center", clip_on=False, **style)
    if row["fault"]:
        axes.text(FIRST_CLAIM, place, row["first_claim"], va="center", **style)


def _square(
    axes: Axes, column: int, place: int, *, facecolor: str, edgecolor: str
) -> None:
    corner = (column - 0.4, place - 0.4)
    colours: dict[str, Any] = {"facecolor": facecolor, "edgecolor": edgecolor}
    axes.add_patch(Rectangle(corner, 0.8, 0.8, linewidth=0.7, **colours))


def _kill_legend(axes: Axes) -> None:
    square: dict[str, Any] = {"marker": "s", "linestyle": "none", "markersize": 5}
    for label, look in (
        ("the claim that has to notice, and did", {**square, "color": ORANGE}),
        (
            "has to notice, and did not",
            {**square, "color": ORANGE, "markerfacecolor": "none"},
        ),
        ("another claim noticed", {**square, "color": BLUE}),
        ("noticed first", {**square, "marker": ".", "color": INK}),
    ):
        axes.plot([], [], label=label, **look)
    _legend(axes, columns=2)


def _level_lines(axes: Axes, levels: Sequence[Row]) -> None:
    styles = [(GREEN, "solid"), (MUTED, "dashed"), (PURPLE, "dotted")]
    for level, (colour, line) in zip(levels, styles, strict=False):
        value = level["nats_per_token"]
        label = f"{level['name']} {value:.3f}"
        axes.axhline(value, color=colour, linestyle=line, linewidth=1.2, label=label)


def _cell(axes: Axes, row: Row, *, has_number: bool) -> None:
    weight = row["weight"]
    if weight == 0:
        return
    corner = (row["key"] - 0.48, row["query"] - 0.48)
    axes.add_patch(
        Rectangle(corner, 0.96, 0.96, facecolor=BLUE, alpha=0.7 * weight, linewidth=0)
    )
    if has_number:
        axes.text(
            row["key"],
            row["query"],
            f"{weight:.2f}".removeprefix("0"),
            ha="center",
            va="center",
            fontsize=6.5,
        )


def _legend(axes: Axes, *, columns: int) -> None:
    axes.figure.legend(loc="outside lower center", ncols=columns)


def _plain(text: str) -> str:
    # A dollar sign would start Matplotlib's own formula language.
    return text.replace("$", r"\$")


def _columns(rows: Sequence[Row], column: str) -> tuple[list[int], list[float]]:
    return (
        [row["cumulative_valid_targets"] for row in rows],
        [row[column] for row in rows],
    )


def _picture(
    name: str,
    height_inches: float,
    draw: Callable[[Axes], None],
    width_inches: float = WIDTH_INCHES,
) -> str:
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return inline(name, buffer.getvalue())
