"""A signal to end waits for a moment at which nothing is half done."""

import signal
import threading

import pytest

from tuneloom.app.conducting.interruptions import Interruptions


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_kept_until_it_is_asked_for(number: signal.Signals) -> None:
    with Interruptions() as interruptions:
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            interruptions.check()


def test_nothing_is_raised_while_nobody_wants_to_end() -> None:
    with Interruptions() as interruptions:
        interruptions.check()


def test_the_second_signal_is_not_kept() -> None:
    with Interruptions():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_signals_are_answered_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interruptions():
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_another_thread_the_handlers_stay_as_they_are() -> None:
    seen: list[object] = []

    def enter() -> None:
        with Interruptions() as interruptions:
            interruptions.check()
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
