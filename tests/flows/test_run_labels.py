"""Names and tags tell runs apart, and a wrong parameter stops no run from starting."""

import pytest

from flows.parameters import Settings
from flows.run_labels import name_of, tags_of

ASKED = {"preset_name": "fixture", "manifest": None, "is_fresh": False}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "qualify fixture"),
        ({"is_fresh": True}, "qualify fixture fresh"),
        ({"manifest": "/data/letters/manifest.json"}, "qualify fixture letters"),
        ({"proof": "crash"}, "qualify crash fixture"),
        ({"implementation": "/models/my_model.py"}, "qualify fixture my_model"),
        (
            {"settings": {"train": {"updates": 60}}},
            "qualify fixture train.updates=60",
        ),
        (
            {"settings": Settings.from_overrides(["train.updates=60"])},
            "qualify fixture train.updates=60",
        ),
        (
            {
                "settings": {
                    "train": {"updates": 60, "order_seed": 1, "dropout_seed": 2},
                    "certify": {"points": [1, 2]},
                }
            },
            "qualify fixture train.updates=60 train.order_seed=1 and 2 more",
        ),
        (
            {"settings": {"interrupt": {"points": list(range(20))}}},
            "qualify fixture interrupt.points=[0, 1, 2, 3, 4, 5, 6, 7…",
        ),
        ({"settings": {"trian": 3}}, "qualify fixture"),
        ({"settings": "x", "preset_name": 3}, "qualify 3"),
    ],
)
def test_a_name_says_what_a_run_is_about(changes, expected):
    assert name_of("qualify", ASKED | changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["qualify", "fixture", "reuse"]),
        ({"is_fresh": True}, ["qualify", "fixture", "fresh"]),
        (
            {"settings": {"train": {"updates": 60}}},
            ["qualify", "fixture", "reuse", "changed settings"],
        ),
        ({"settings": {"train": {}}}, ["qualify", "fixture", "reuse"]),
        (
            {"implementation": "/models/my_model.py"},
            ["qualify", "fixture", "reuse", "implementation:my_model"],
        ),
    ],
)
def test_tags_say_how_a_run_was_computed(changes, expected):
    assert tags_of("qualify", ASKED | changes) == expected
