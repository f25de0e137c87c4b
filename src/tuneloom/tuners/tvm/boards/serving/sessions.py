"""A process that serves one client."""

import contextlib
import ctypes
import os
import shutil
import signal
import time
from pathlib import Path

from tuneloom.tuners.tvm.boards.serving.callers import Caller

_PR_SET_PDEATHSIG = 1


class ServedSession:
    """A process that serves one client, and what has to be cleaned up after it."""

    def __init__(self, caller: Caller, pid: int, folder: str) -> None:
        self.caller = caller
        self.pid = pid
        self.folder = folder
        self.until_s = None if caller.timeout_s is None else time.monotonic() + caller.timeout_s

    def kill(self) -> None:
        """End it with all it started."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(self.pid, signal.SIGKILL)

    def clean(self) -> None:
        """Leave nothing behind once its process is gone."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self.caller.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def become_session() -> None:
    """In a child: signals as usual, a group of its own, and gone when the parent is or memory is short."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
