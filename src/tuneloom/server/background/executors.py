"""Executors beside a server, as processes of their own."""

import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from tuneloom.server.settings import ServerSettings
from tuneloom.store.opening import FILES

_LOG = logging.getLogger("tuneloom.server")
_LOOK_S = 1.0
_LEAST_PAUSE_S, _MOST_PAUSE_S, _LONG_S = 0.5, 60.0, 120.0
_WAIT_S = 90.0  # stages that run come to their end first


@dataclass(slots=True)
class Pauses:
    """How long to wait before a process is started again: longer each time, unless one lived for long."""

    pause_s: float = _LEAST_PAUSE_S
    ended_s: dict[int, float] = field(default_factory=dict)
    started_s: float = 0.0

    def over(self, pid: int, now_s: float) -> bool:
        """Whether the one that was found dead may be replaced now."""
        if pid not in self.ended_s:
            lived = now_s - self.started_s > _LONG_S
            self.pause_s = _LEAST_PAUSE_S if lived else min(2 * self.pause_s, _MOST_PAUSE_S)
            self.ended_s[pid] = now_s
        if now_s - self.ended_s[pid] < self.pause_s:
            return False
        del self.ended_s[pid]
        self.started_s = now_s
        return True


@dataclass(slots=True)
class Executors:
    """Executors as processes of their own: one that dies takes nothing with it, and is started again."""

    settings: ServerSettings
    _processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    _pauses: "Pauses" = field(default_factory=lambda: Pauses())
    _ending: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def __enter__(self) -> "Executors":
        self._processes = [self._started() for _ in range(self.settings.executors)]
        if self._processes:
            self._watcher = threading.Thread(target=self._watch, name="executors", daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._watcher is not None:
            self._watcher.join()  # it may be starting another executor, which has to end, too
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _watch(self) -> None:
        while not self._ending.wait(_LOOK_S):
            for number, process in enumerate(self._processes):
                code = process.poll()
                if code is None or self._ending.is_set():
                    continue
                if self._pauses.over(process.pid, time.monotonic()):
                    _LOG.error("an executor ended with code %s; another is started", code)
                    self._processes[number] = self._started()

    def _started(self) -> "subprocess.Popen[bytes]":
        settings = self.settings
        words = [
            sys.executable,
            "-m",
            "tuneloom.cli.main",
            "executor",
            "--attached",
            "--policy",
            settings.policy,
        ]
        words += ["--device-cores", str(settings.device_cores)]
        if settings.store is not None:
            words += ["--store", settings.store]
        if settings.farm is not None:
            words += ["--farm", settings.farm]
        # A signal for the terminal's group should reach the server alone: it ends them in order. When
        # the server is killed, the pipe closes, and they end by themselves.
        return subprocess.Popen(words, stdin=subprocess.PIPE, process_group=0, env=self._variables())

    def _variables(self) -> dict[str, str]:
        files = self.settings.files
        return dict(os.environ) | ({FILES: files} if files is not None else {})
