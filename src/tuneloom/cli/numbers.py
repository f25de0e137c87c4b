"""Numbers on the command line: what is none, or out of range, gets one line that names the option."""

import argparse
from collections.abc import Callable
from typing import Any

from tuneloom.model.numbers import COUNT, NATURAL, POSITIVE, SEED, NumberKind


def number(kind: NumberKind) -> Callable[[str], Any]:
    """What reads a number of this kind, and raises ArgumentTypeError for anything else."""

    def read(text: str) -> Any:
        try:
            value = int(text) if kind.whole else float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {kind.words}, got {text!r}") from None
        if not kind.fits(value):
            raise argparse.ArgumentTypeError(f"must be {kind.words_for(value)}, got {text!r}")
        return value

    return read


count, natural, seed, positive = number(COUNT), number(NATURAL), number(SEED), number(POSITIVE)
