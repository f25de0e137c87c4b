"""A program that ends by itself in the middle of its trials, so that no test has to be in time for that.

`python -m support.ending TRIALS SIGNAL SECONDS …`: runs Python with the words that follow, and sends itself
the signal so many seconds after its store has kept so many trials.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from support.warm.fork import run_python
from tuneloom.store import KeptTrial
from tuneloom.store.bank.trials import TrialQueries


def ending(trials: int, number: signal.Signals, *words: str, after_s: float = 0.0) -> tuple[str, ...]:
    """The words of such a program; `words` are those of the command `tuneloom`, or begin with a script."""
    program = words if words[0].endswith(".py") else ("-m", "tuneloom.cli.main", *words)
    return ("-m", __name__, str(trials), number.name, str(after_s), *program)


def main() -> None:
    trials, name, after_s, *words = sys.argv[1:]
    arguments = (os.getpid(), signal.Signals[name])
    later = threading.Timer(float(after_s), os.kill, arguments)
    _call_after(int(trials), later.start if float(after_s) else lambda: os.kill(*arguments))
    run_python(words)


def _call_after(trials: int, end: Callable[[], None]) -> None:
    keep, missing = TrialQueries.keep_trials, [trials]

    def counted(self: TrialQueries, kept: Sequence[KeptTrial]) -> list[str]:
        lost = keep(self, kept)
        before, missing[0] = missing[0], missing[0] - len(kept)
        if before > 0 >= missing[0]:
            end()
        return lost

    TrialQueries.keep_trials = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
