"""What is said of a name that nobody knows."""

import pytest

from flows.reading import MOST_NAMES, UnknownName, check_known


def test_a_few_known_names_are_all_listed():
    with pytest.raises(UnknownName) as refused:
        check_known("Preset", "fixtur", ["prose", "fixture"])
    assert str(refused.value) == (
        "Preset 'fixtur' is unknown. Did you mean 'fixture'? Known: prose, fixture."
    )


def test_of_many_known_names_the_nearest_are_listed_and_the_rest_counted():
    names = [f"fault-{number}" for number in range(300)]
    with pytest.raises(UnknownName) as refused:
        check_known("The fault", "fault-2x", names)
    assert f"and {300 - MOST_NAMES} others" in str(refused.value)
    assert str(refused.value).count("fault-") <= MOST_NAMES + 2
