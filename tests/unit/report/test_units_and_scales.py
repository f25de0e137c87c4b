"""Numbers read well, and axes hold them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneloom.report.drawing.scales import Linear, Logarithmic, around, nice_seconds, nice_step
from tuneloom.report.drawing.units import brief, clipped, count, duration, percent, three_digits, times

THIN = "\N{THIN SPACE}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0.00 s"),
        (3.2e-8, "32.0 ns"),
        (0.0000123, "12.3 µs"),
        (0.00831, "8.31 ms"),
        (0.99999, "1.00 s"),
        (12.44, "12.4 s"),
        (119.0, "119 s"),
        (200.0, "3 min 20 s"),
        (7500.0, "2 h 05 min"),
    ],
)
def test_durations_have_a_unit_that_fits(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_are_short() -> None:
    assert [three_digits(v) for v in (1.234, 12.34, 1234.5, math.inf)] == ["1.23", "12.3", f"1{THIN}234", "–"]
    assert [brief(v) for v in (5.0, 0.2, 12.5, 100.0)] == ["5", "0.2", "12.5", "100"]
    assert (times(3.415), times(None)) == ("3.42×" if f"{3.415:.2f}" == "3.42" else "3.41×", "–")
    assert [percent(s) for s in (0.0, 0.0001, 0.052, 0.5, 1.0)] == [
        "0.0 %",
        "< 0.1 %",
        "5.2 %",
        "50 %",
        "100 %",
    ]
    assert count(20000) == f"20{THIN}000"


@given(st.text(max_size=80), st.integers(3, 60))
def test_clipped_text_is_never_longer(text: str, length: int) -> None:
    assert len(clipped(text, length)) <= length
    assert clipped(text, length) == text or len(text) > length


@given(st.floats(1e-9, 1e6), st.floats(1.001, 1e6))
def test_logarithmic_ticks_lie_on_the_axis(low: float, ratio: float) -> None:
    axis = Logarithmic(low, low * ratio, 100.0, 0.0)
    ticks = axis.ticks(5)
    assert all(-1 <= axis(tick) <= 101 for tick in ticks)
    assert len(ticks) <= 12
    assert ticks == sorted(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_linear_ticks_lie_on_the_axis(low: float, width: float) -> None:
    axis = Linear(low, low + width, 0.0, 100.0)
    ticks = axis.ticks(6)
    assert ticks and all(-1 <= axis(tick) <= 101 for tick in ticks)


@pytest.mark.parametrize(("rough", "step"), [(0.013, 0.02), (1.0, 1.0), (3.0, 5.0), (7.0, 10.0)])
def test_steps_are_round(rough: float, step: float) -> None:
    assert nice_step(rough) == pytest.approx(step)


def test_steps_of_time_are_parts_of_minutes_and_hours() -> None:
    assert [nice_seconds(rough) for rough in (2.5, 11, 40, 1000, 50_000, 100_000)] == [
        5,
        15,
        60,
        1800,
        86400,
        172800,
    ]


def test_a_flat_curve_still_has_an_axis() -> None:
    low, high = around([0.5, 0.5])
    assert low < 0.5 < high
