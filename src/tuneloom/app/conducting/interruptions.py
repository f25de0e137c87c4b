"""Ctrl-C and SIGTERM, noticed where nothing is half done."""

import signal
import threading
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Interruptions:
    """While entered, a signal to end is kept until somebody asks for it.

    Raising in the middle of a talk with the warm parent or of a transaction would leave
    them half done, and the clean-up would trip over it. A second signal raises at once:
    the user has lost patience. Signals reach the main thread
    alone; entered in another one it does nothing.
    """

    def __init__(self) -> None:
        self._asked = False
        self._earlier: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> "Interruptions":
        if threading.current_thread() is threading.main_thread():
            self._earlier = {number: signal.signal(number, self._note) for number in _ENDING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    @property
    def asked(self) -> bool:
        """Whether the user asked to end."""
        return self._asked

    def check(self) -> None:
        """Raise KeyboardInterrupt if the user asked to end."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
