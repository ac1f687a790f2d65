"""The pictures: equal rows give equal bytes, hostile text stays text, colours adapt."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from warehouse import figures
from warehouse.figure_colours import standalone

HOSTILE = "</text><script>alert(1)</script>$x^2$&"


def attention_rows(size: int, label: str = "a") -> list[dict]:
    return [
        {
            "query": query,
            "key": key,
            "query_label": label,
            "key_label": label,
            "weight": 1 / (query + 1) if key <= query else 0.0,
        }
        for query in range(size)
        for key in range(size)
    ]


def curve_rows() -> list[dict]:
    return [
        {
            "series": series,
            "cumulative_valid_targets": 100 * step,
            "nats_per_token": 3.0 / step,
            "smoothed_nats_per_token": 3.0 / step,
        }
        for series in ("training", "validation")
        for step in range(1, 8)
    ]


LEVELS = [{"name": "held-out", "nats_per_token": 1.071}]
CACHES = [{"cache_policy": "fp32", "part": "keys", "part_bytes": 1152}]
ERRORS = [{"release_policy": "bf16", "largest_error": 0.03, "mean_error": 0.004}]
STAGES = [{"stage": "train_model", "program_seconds": 2.0, "around_seconds": 0.1}]
DRILLS = [
    {"stage": "train_model", "fault": "rate-doubled", "claim": "2.9"}
    | {"first_claim": "", "is_benign": False, "is_killed": False},
    {"stage": "train_model", "fault": "mask-leaks", "claim": "1.8"}
    | {"first_claim": "1.10", "is_benign": False, "is_killed": True},
    {"stage": "evaluate_heldout", "fault": "other-fill", "claim": "1.8"}
    | {"first_claim": "", "is_benign": True, "is_killed": False},
    {"stage": "store", "fault": "last-byte-lost", "claim": "store"}
    | {"first_claim": "", "is_benign": False, "is_killed": False},
]
KILLS = [
    {"fault": "mask-leaks", "claim": claim, "is_own_claim": claim == "1.8"}
    | {"is_first": claim == "1.10"}
    for claim in ("1.8", "1.10")
]


@pytest.fixture(scope="module")
def drawings() -> dict[str, str]:
    return {
        "learning_curve": figures.learning_curve(curve_rows(), LEVELS),
        "attention_head": figures.attention_head(attention_rows(5)),
        "cache_bytes": figures.cache_bytes(CACHES),
        "logit_errors": figures.logit_errors(ERRORS),
        "stage_durations": figures.stage_durations(STAGES),
        "kill_matrix": figures.kill_matrix(DRILLS, KILLS),
    }


def test_every_picture_is_one_well_formed_element(drawings: dict[str, str]) -> None:
    for name, svg in drawings.items():
        assert ElementTree.fromstring(svg).tag.endswith("svg"), name


def test_equal_rows_give_equal_bytes(drawings: dict[str, str]) -> None:
    assert figures.attention_head(attention_rows(5)) == drawings["attention_head"]
    assert figures.learning_curve(curve_rows(), LEVELS) == drawings["learning_curve"]
    assert figures.attention_head(attention_rows(4)) != drawings["attention_head"]


def test_pictures_name_no_colour_of_their_own(drawings: dict[str, str]) -> None:
    """A literal colour would vanish on a dark or on a light page."""
    for name, svg in drawings.items():
        assert re.findall(r"#[0-9a-f]{6}\b", svg) == [], name
        assert "var(--ink)" in svg, name


def test_pictures_on_one_page_share_no_id(drawings: dict[str, str]) -> None:
    ids = [
        found for svg in drawings.values() for found in re.findall(r' id="(.+?)"', svg)
    ]
    assert len(ids) == len(set(ids))


def test_axes_carry_units(drawings: dict[str, str]) -> None:
    for name, unit in {
        "learning_curve": "nats per token",
        "cache_bytes": "bytes",
        "logit_errors": "no unit",
        "stage_durations": "seconds",
    }.items():
        assert unit in drawings[name], name


def test_hostile_labels_stay_text() -> None:
    svg = figures.attention_head(attention_rows(2, HOSTILE))
    assert "<script" not in svg
    assert HOSTILE in "".join(ElementTree.fromstring(svg).itertext())


def test_faults_stand_below_their_stage_by_claim_beside_who_noticed_first(
    drawings: dict[str, str],
) -> None:
    texts = [
        "".join(element.itertext()).strip()
        for element in ElementTree.fromstring(drawings["kill_matrix"]).iter()
        if element.tag.endswith("text")
    ]
    labels = texts[texts.index("train_model") :]
    assert labels[:8] == [
        *("train_model", "mask-leaks", "1.10", "rate-doubled"),
        *("store", "last-byte-lost", "no faults", "other-fill"),
    ]


def test_masked_weights_are_left_blank() -> None:
    """A leak of the mask must be seen: three weights are drawn, then four."""
    masked = figures.attention_head(attention_rows(2))
    leaking = [row | {"weight": row["weight"] or 0.1} for row in attention_rows(2)]
    assert figures.attention_head(leaking).count("opacity") > masked.count("opacity")


def test_a_standalone_picture_carries_colours_for_both_modes(
    drawings: dict[str, str],
) -> None:
    alone = standalone(drawings["cache_bytes"])
    assert "prefers-color-scheme:dark" in alone
    assert ElementTree.fromstring(alone).tag.endswith("svg")
