"""Graphs are tuned in another process, one after the other, while their model runs."""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from tuneloom.errors import TuneloomError
from tuneloom.pytorch.adapting import LOG, AdaptiveGraph, DeployedGraph
from tuneloom.pytorch.options import FIRST, JOB, REFUSED, TUNED, CompileOptions

LOADING = "tuneloom-loading"
"""The threads that load what is in the store."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Commission:
    """A graph to be tuned; `done` is set when nothing more will come of it."""

    graph: AdaptiveGraph
    options: CompileOptions
    folder: Path
    done: threading.Event = field(default_factory=threading.Event)

    def found(self) -> str | None:
        """The best bundle that is in the folder; None if there is none yet."""
        return next((one for one in (TUNED, FIRST) if (self.folder / one / "bundle.json").is_file()), None)

    def deliver(self) -> bool:
        """Offer what is in the folder; False if nothing tuned is there yet."""
        name = self.found()
        if name is None or self.graph.answer is None:
            return False
        graph = self.graph.graph
        self.graph.offer(name, DeployedGraph(self.folder / name, graph.inputs, self.graph.answer))
        return name == TUNED

    def refused(self) -> bool:
        """Whether it was found before that the graph can't be compiled; says so."""
        path = self.folder / REFUSED
        if not path.is_file():
            return False
        self.graph.refused = True
        what = "stays in PyTorch" if self.graph.graph.varying is None else "is not compiled for all sizes"
        LOG.warning("%s %s: %s", self.graph.graph.name, what, path.read_text().strip())
        return True

    def close(self) -> None:
        """Nothing more will come of it."""
        self.graph.final = True
        self.done.set()

    def write(self) -> None:
        """Write what the other process needs; raises ModelError if the graph can't be written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        graph = self.graph.graph
        job = {
            "name": graph.name,
            "target": graph.target(self.options),
            "file": graph.write(self.folder).name,
            "cores": torch.get_num_threads(),
            "inputs": graph.inputs,
            "tensors": self.graph.answer.tensors if self.graph.answer is not None else (),
            "options": {**asdict(self.options), "dtype": self.graph.dtype},
            "shapes": {} if graph.varying is None else graph.varying.shapes,
        }
        (self.folder / JOB).write_text(json.dumps(job))


class Workshop:
    """The thread of this process that has graphs tuned; it ends with the process, and so does the tuning."""

    def __init__(self) -> None:
        self._commissions: queue.SimpleQueue[Commission] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._tuning: subprocess.Popen[str] | None = None

    def add(self, commission: Commission) -> None:
        """Have a graph tuned after those that were added before."""
        self._commissions.put(commission)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tuneloom", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def load(self, commission: Commission) -> None:
        """Offer what an earlier process left, and have it tuned if it was not; no call waits for that."""
        threading.Thread(target=self._load, args=(commission,), name=LOADING, daemon=True).start()

    def _load(self, commission: Commission) -> None:
        try:
            if not commission.deliver():
                self.add(commission)
        except Exception as error:  # whatever is wrong with a bundle, the model itself runs
            why = f"{type(error).__name__}: {error}"
            LOG.warning(
                "%s stays in PyTorch: %s can't be loaded: %s",
                commission.graph.graph.name,
                commission.folder,
                why,
            )

    def close(self) -> None:
        """End the tuning: the other process stops when nobody listens any more. Its trials are kept."""
        if self._tuning is not None and self._tuning.stdin is not None:
            self._tuning.stdin.close()

    def _work(self) -> None:
        while True:
            commission = self._commissions.get()
            try:
                self._tune(commission)
            except (TuneloomError, OSError) as error:
                LOG.warning("%s stays in PyTorch: %s", commission.graph.graph.name, error)
            finally:
                commission.close()

    def _tune(self, commission: Commission) -> None:
        commission.write()
        with (commission.folder / "log.txt").open("w") as log:
            self._tuning = subprocess.Popen(
                [sys.executable, "-m", "tuneloom.pytorch.tuning", str(commission.folder)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        if commission.options.mode != "wait":
            let_others_first(self._tuning.pid)
        assert self._tuning.stdout is not None
        for _ in self._tuning.stdout:  # a line whenever there is something new in the folder
            commission.deliver()
        if self._tuning.wait() != 0 and not commission.refused():
            name, where = commission.graph.graph.name, commission.folder / "log.txt"
            LOG.warning("%s: tuning ended early; %s says why", name, where)


def let_others_first(process: int) -> None:
    """Let a process and those it will start run only when nobody else wants to."""
    with suppress(OSError, AttributeError):  # it may have ended; not every system has such a class
        os.setpriority(os.PRIO_PROCESS, process, 19)
        os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


WORKSHOP = Workshop()
"""That of this process."""
