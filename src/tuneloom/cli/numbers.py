"""Numbers on the command line: what is none, or out of range, gets one line that names the option."""

import argparse

from tuneloom.model.numbers import COUNT, NATURAL, POSITIVE, SEED, WHOLE, NumberKind


def count(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(COUNT, text)


def natural(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(NATURAL, text)


def seed(text: str) -> int:
    """A random seed."""
    return _whole(SEED, text)


def whole(text: str) -> int:
    """A whole number, which may be negative."""
    return _whole(WHOLE, text)


def positive(text: str) -> float:
    """A finite number above 0."""
    return _fitting(POSITIVE, text, _as_float(text))


def _whole(kind: NumberKind, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {kind.words}, got {text!r}") from None
    return int(_fitting(kind, text, number))


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _fitting(kind: NumberKind, text: str, number: float | None) -> float:
    if number is None or not kind.fits(number):
        raise argparse.ArgumentTypeError(f"must be {kind.words_for(number)}, got {text!r}")
    return number
