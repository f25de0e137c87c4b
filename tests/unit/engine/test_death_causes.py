"""How a process died is told by type."""

import os
import signal

import pytest

from tuneloom.engine.calls import DeathCause, ExitedWith, KilledBy, OutOfMemory
from tuneloom.engine.processes import cause_of, memory_kills

EXITED_WITH_3 = 3 << 8


@pytest.mark.parametrize(
    ("status", "memory_ran_out", "cause", "words"),
    [
        (EXITED_WITH_3, False, ExitedWith(3), "ended with exit code 3"),
        (signal.SIGSEGV, False, KilledBy(signal.SIGSEGV), "killed by SIGSEGV"),
        (signal.SIGSEGV, True, KilledBy(signal.SIGSEGV), "killed by SIGSEGV"),
        (signal.SIGKILL, False, KilledBy(signal.SIGKILL), "killed by SIGKILL"),
        (signal.SIGKILL, True, OutOfMemory(), "killed because the machine ran out of memory"),
        (signal.SIGRTMIN + 1, False, KilledBy(signal.SIGRTMIN + 1), "killed by signal"),
    ],
)
def test_a_status_gives_a_cause_with_its_words(
    status: int, memory_ran_out: bool, cause: DeathCause, words: str
) -> None:
    found = cause_of(status, memory_ran_out=memory_ran_out)
    assert found == cause and str(found).startswith(words)


def test_the_kernel_is_asked_how_often_memory_ran_out() -> None:
    assert memory_kills() >= 0
    assert os.path.exists("/proc/vmstat")
