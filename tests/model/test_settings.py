"""Overrides are strict about names and types, and dataclasses survive JSON."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import settings
from model.refusal import ReasonCode, Refused


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    is_on: bool = False


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    count: int = 1
    name: str = "x"
    sizes: tuple[int, ...] = (1, 2)
    words: tuple[str, ...] = ("a",)


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("count=3", Outer(count=3)),
        (" count = 3", Outer(count=3)),
        ("inner.rate=2", Outer(inner=Inner(rate=2.0))),
        ("inner.rate=1e-3", Outer(inner=Inner(rate=1e-3))),
        ("inner.is_on=true", Outer(inner=Inner(is_on=True))),
        ("name=7", Outer(name="7")),
        ("name=", Outer(name="")),
        ("name=a=b", Outer(name="a=b")),
        ("sizes=5,6", Outer(sizes=(5, 6))),
        ("sizes=[5, 6]", Outer(sizes=(5, 6))),
        ("sizes=7", Outer(sizes=(7,))),
        ("words=abc|,d", Outer(words=("abc|", "d"))),
        ('words=["a,b"]', Outer(words=("a,b",))),
    ],
)
def test_a_value_is_read_as_the_type_of_its_field(
    assignment: str, expected: Outer
) -> None:
    assert settings.override(Outer(), [assignment]) == expected


def test_a_group_may_be_left_out_where_one_field_alone_is_meant() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Deep:
        left: Outer = field(default_factory=Outer)
        right: Outer = field(default_factory=Outer)

    def meant(assignment: str) -> Deep:
        return settings.override(Deep(), [assignment])

    assert meant("left.rate=2") == meant("left.inner.rate=2")
    # Its own field comes first, and a word that fits two is not guessed.
    assert meant("left.count=7") == Deep(left=Outer(count=7))
    for unclear in ("rate=2", "left.rate.rate=2", "left.at=2", "inner.rate=2"):
        with pytest.raises(Refused) as refused:
            meant(unclear)
        assert refused.value.code == ReasonCode.UNKNOWN_SETTING


@pytest.mark.parametrize(
    ("assignment", "code", "words"),
    [
        ("count=1.5", ReasonCode.SETTING_INVALID, "not a whole number"),
        ("count=true", ReasonCode.SETTING_INVALID, "not a whole number"),
        ("count=", ReasonCode.SETTING_INVALID, "not a whole number"),
        ("inner.rate=NaN", ReasonCode.SETTING_INVALID, "not a finite number"),
        ("inner.rate=Infinity", ReasonCode.SETTING_INVALID, "not a finite number"),
        ("inner.is_on=1", ReasonCode.SETTING_INVALID, "not true or false"),
        ("sizes=a", ReasonCode.SETTING_INVALID, "'a'"),
        ("inner=3", ReasonCode.SETTING_INVALID, "set one of inner.rate, inner.is_on"),
        ("count", ReasonCode.SETTING_INVALID, "has no '='"),
        ("cuont=3", ReasonCode.UNKNOWN_SETTING, "did you mean 'count'?"),
        ("inner.rat=3", ReasonCode.UNKNOWN_SETTING, "known: inner.rate, inner.is_on"),
        ("count.more=3", ReasonCode.UNKNOWN_SETTING, "known: count"),
        ("=3", ReasonCode.UNKNOWN_SETTING, "known: inner.rate"),
    ],
)
def test_a_wrong_name_or_type_is_refused_with_what_is_known(
    assignment: str, code: ReasonCode, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        settings.override(Outer(), [assignment])
    assert refused.value.code is code
    assert words in refused.value.message


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_assignment_is_applied_or_refused_and_never_crashes(
    path: str, value: str
) -> None:
    try:
        changed = settings.override(Outer(), [f"{path}={value}"])
    except Refused as refused:
        assert refused.code in ReasonCode
    else:
        assert isinstance(changed, Outer)


@given(
    st.builds(
        Outer,
        inner=st.builds(
            Inner,
            rate=st.floats(allow_nan=False, allow_infinity=False),
            is_on=st.booleans(),
        ),
        count=st.integers(),
        name=st.text(),
        sizes=st.lists(st.integers()).map(tuple),
        words=st.lists(st.text()).map(tuple),
    )
)
def test_settings_survive_the_way_through_plain_values(value: Outer) -> None:
    assert settings.from_dict(Outer, settings.to_dict(value)) == value


@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        ([], ReasonCode.SETTING_INVALID, "an object with its fields"),
        ({}, ReasonCode.SETTING_INVALID, "lacks the fields"),
        ({"more": 1}, ReasonCode.UNKNOWN_SETTING, "'more' is unknown in Outer"),
        ({"inner": 3}, ReasonCode.SETTING_INVALID, "lacks the fields"),
    ],
)
def test_plain_values_that_are_not_the_settings_are_refused(
    values: object, code: ReasonCode, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        settings.from_dict(Outer, values)  # type: ignore[arg-type]
    assert refused.value.code is code
    assert words in refused.value.message
