"""Restrictions are read by a whitelist, and say where they are wrong."""

from collections.abc import Mapping

import numpy as np
import pytest

from tuneloom.errors import SpaceError
from tuneloom.tuners.kernel.expressions import LONGEST, parse, value_of

KNOBS: Mapping[str, object] = {"x": (1, 2, 4), "y": (1, 2, 3), "mode": ("fast", "safe")}


def holds(text: str, **values: list[object]) -> list[bool]:
    columns = {name: np.array(column, dtype=None) for name, column in values.items()}
    return [bool(met) for met in parse(text, KNOBS).holds(columns)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x * y <= 4", [True, True, False]),
        ("x % y == 0 and not x > 2", [True, True, False]),
        ("1 < x <= 2 or y == 3", [False, True, True]),
        ("x in [1, 4]", [True, False, True]),
        ("y not in (2, 3)", [True, False, False]),
        ("max(x, y) - min(x, y) == 0", [True, True, False]),
        ("abs(-x) ** 2 >= 4", [False, True, True]),
        ("(x if y > 1 else 8) < 4", [False, True, False]),
        ("x // y + x / y != 2", [False, False, True]),
    ],
)
def test_an_expression_is_evaluated_for_every_row(text: str, expected: list[bool]) -> None:
    assert holds(text, x=[1, 2, 4], y=[1, 2, 3]) == expected


def test_text_values_can_be_compared() -> None:
    assert holds("mode == 'fast'", mode=["fast", "safe"]) == [True, False]
    assert holds("mode in ['safe']", mode=["fast", "safe"]) == [False, True]


def test_a_division_by_zero_satisfies_nothing() -> None:
    assert holds("x % y == 0", x=[1], y=[0]) == [False]
    assert holds("x / y != 7", x=[1], y=[0]) == [False]


def test_a_guarded_division_by_zero_is_no_matter() -> None:
    assert holds("y == 0 or x % y == 0", x=[1, 4], y=[0, 2]) == [True, True]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("x * * y", 5),
        ("x <= ", 5),
        ("x + unknown < 3", 5),
        ("x.real < 3", 1),
        ("x < (lambda: 3)", 6),
        ("x is 3", 1),
    ],
)
def test_a_wrong_expression_shows_its_position(text: str, column: int) -> None:
    with pytest.raises(SpaceError, match=f"column {column}") as caught:
        parse(text, KNOBS)
    assert str(caught.value).splitlines()[-1] == "  " + " " * (column - 1) + "^"


@pytest.mark.parametrize(
    "text",
    ["__import__('os').system('true')", "open('f')", "[x for x in (1,)]", "x == b'1'", "f'{x}'", "max(*[x])"],
)
def test_nothing_but_arithmetic_is_allowed(text: str) -> None:
    with pytest.raises(SpaceError):
        parse(text, KNOBS)


def test_an_unknown_knob_is_named_with_the_known_ones() -> None:
    with pytest.raises(SpaceError, match="unknown knob 'z'; known: 'x', 'y', 'mode'"):
        parse("z > 1", KNOBS)


def test_deep_and_long_expressions_are_refused() -> None:
    with pytest.raises(SpaceError):
        parse("(" * 5000 + "x" + ")" * 5000, KNOBS)
    with pytest.raises(SpaceError, match="too long"):
        parse("x" * (LONGEST + 1), KNOBS)


def test_arithmetic_on_text_is_refused() -> None:
    with pytest.raises(SpaceError, match="not a number"):
        holds("mode * 2 > 1", mode=["fast"])


def test_an_expression_has_a_value_for_one_configuration() -> None:
    assert value_of("(n + b - 1) // b", {"n": 100, "b": 32}) == 4
    with pytest.raises(SpaceError, match="no value"):
        value_of("n / b", {"n": 1, "b": 0})
