"""The timer waits, counts in nanoseconds, and keeps the first call apart."""

from typing import Any

from model.checks import timing


def test_the_timer_holds_the_wait_for_a_slow_result() -> None:
    row = timing.check_timer()
    assert row["value_count"] >= timing.STUB_WAIT_NS
    assert row["value_count"] < 20 * timing.STUB_WAIT_NS


def test_a_timer_that_does_not_wait_is_seen() -> None:
    """On the tiny model dispatch and completion are nearly equal; here they are not."""

    def dispatch_only(function: Any, *arguments: Any) -> tuple[int, Any]:
        return timing.timed_call(function, *arguments, wait=lambda outputs: outputs)

    assert timing.check_timer(dispatch_only)["value_count"] < timing.STUB_WAIT_NS


def _samples(**changes: Any) -> timing.Samples:
    samples = timing.Samples(
        first={"prefill": 9000, "decode": 8000},
        warm={"prefill": [100, 90, 110], "decode": [50, 60, 40]},
        cache_lengths=[5, 5, 5],
    )
    for name, value in changes.items():
        setattr(samples, name, value)
    return samples


def _values(samples: timing.Samples) -> dict[tuple[str, str], Any]:
    rows = timing.check_samples(samples, "fp32", 1, 5, is_cold=True)
    return {
        (row["measure"], row["case_name"].partition("/")[0]): row["value_count"]
        if row["value_count"] is not None
        else row["value_real"]
        for row in rows
    }


def test_the_first_call_is_no_warm_sample() -> None:
    values = _values(_samples())
    assert values["warm_samples", "prefill"] == 3
    assert values["median_warm_ns", "decode"] == 50
    assert values["first_call_over_warm", "prefill"] == 90.0
    assert values["cache_length_drift", "decode"] == 0


def test_a_growing_prefix_and_a_clock_that_runs_back_are_seen() -> None:
    values = _values(
        _samples(
            cache_lengths=[5, 6, 7], warm={"prefill": [100, -3], "decode": [50, 60]}
        )
    )
    assert values["cache_length_drift", "decode"] == 2
    assert values["shortest_sample_ns", "prefill"] == -3


def test_every_sample_is_kept_with_what_its_timer_holds() -> None:
    samples = _samples()
    cold = timing.timing_rows(samples, "fp32", 1, 42, is_cold=True)
    warm = timing.timing_rows(samples, "fp32", 2, 43, is_cold=False)
    assert len(cold) == len(warm) == 8
    assert {row["phase"] for row in cold} == {"first", "warm"}
    assert {row["phase"] for row in warm} == {"first-cached", "warm"}
    assert all("perf_counter_ns" in row["timer"] for row in cold)
    assert [row["sample"] for row in cold if row["endpoint"] == "decode"] == [
        0,
        1,
        2,
        3,
    ]
