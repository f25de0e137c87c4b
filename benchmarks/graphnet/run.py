"""Graphs that others collected, in PyTorch, Inductor and Tuneloom: speed, outputs and ES(t).

python benchmarks/graphnet/run.py SAMPLES --seeds 1 2 3 --count 40 --trials 60 --cores 0 1

SAMPLES is `samples/` of a clone of GraphNet, or folders of single graphs. Every graph has a process, one core
and an empty store of its own. Rows are added to --out, one JSON object a line, with the conditions that they
were measured under. A later call goes on there, with what Inductor compiled where TORCHINDUCTOR_CACHE_DIR is
set. It measures a graph again unless a row agrees in all conditions but the commit: a run takes hours, and
most commits change no figure. For figures of one commit alone give a new --out.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from graphnet import conditions, samples, scores

RESULTS = Path(__file__).parents[1] / "results" / "graphnet.jsonl"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"), "1")
INDUCTOR = "TORCHINDUCTOR_CACHE_DIR"
LIMIT_S = 3600


def main() -> int:
    parser = samples.asking(__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seconds", type=float, help="tune a graph for no longer than this")
    parser.add_argument(
        "--cores", type=int, nargs="+", default=[0], help="graphs run side by side, one a core"
    )
    parser.add_argument("--cores-each", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--stop-after", type=float, default=1e9, metavar="S", help="drop what runs by then")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help="measure one graph, here")
    options = parser.parse_args()
    graphs = samples.picked(options)
    if not graphs:
        parser.error("no graphs there; give samples/ of a clone of GraphNet, or folders of single graphs")
    if options.one:
        from graphnet.measuring import measured

        os.sched_setaffinity(0, options.cores)
        print(json.dumps(measured(options)))
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lanes = Lanes(options, folder)
        signal.signal(signal.SIGTERM, lanes.stop)
        lanes.measure(graphs)
    scores.show(read(options.out))
    return 0


def read(path: Path) -> list[dict[str, Any]]:
    """The rows that were measured so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


class Lanes:
    """Cores on which graphs are measured side by side."""

    def __init__(self, options: Any, folder: str) -> None:
        self._options, self._ends_at = options, time.monotonic() + options.stop_after
        self._folder, self._conditions = folder, conditions.of(options)
        self._free: SimpleQueue[list[int]] = SimpleQueue()
        self._count = len(options.cores) // options.cores_each
        for number in range(self._count):
            self._free.put(options.cores[number :: self._count])
        self._running: set[subprocess.Popen[str]] = set()

    def measure(self, graphs: list[Path]) -> None:
        """Add a row for every graph that has none of the same conditions."""
        rows = read(self._options.out)
        known = {row["sample"] for row in rows if conditions.agree(row, self._conditions)}
        wanted = [graph for graph in graphs if samples.title(graph) not in known]
        with ThreadPoolExecutor(self._count) as pool:
            list(pool.map(self._measure, wanted))

    def stop(self, *_: object) -> None:
        """Drop what runs, and begin nothing."""
        self._ends_at = 0.0
        for process in list(self._running):
            _end(process)

    def _measure(self, graph: Path) -> None:
        left_s = min(LIMIT_S, self._ends_at - time.monotonic())
        if left_s <= 0:
            return
        cores = self._free.get()
        try:
            row = self._in_a_process(graph, cores, left_s)
        finally:
            self._free.put(cores)
        if row is not None:
            with self._options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(scores.line(row), flush=True)

    def _in_a_process(self, graph: Path, cores: list[int], left_s: float) -> dict[str, Any] | None:
        """One graph's row; a crash is a row, too. None if the time was up."""
        row: dict[str, Any] = {"sample": samples.title(graph), **self._conditions}
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as home:
            process = subprocess.Popen(
                [sys.executable, __file__, str(graph), "--one", *_words(self._options, cores)],
                env={
                    **os.environ,
                    **THREADS,
                    "TUNELOOM_HOME": home,
                    INDUCTOR: os.environ.get(INDUCTOR) or f"{self._folder}/inductor",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
            try:
                told, errors = process.communicate(timeout=left_s)
                row.update(json.loads(told.splitlines()[-1]))
            except subprocess.TimeoutExpired:
                if left_s < LIMIT_S:
                    return None
                row["eager"] = {"error": f"over {LIMIT_S} s"}
            except (ValueError, IndexError):
                last = (errors.strip().splitlines() or ["nothing"])[-1]
                row["eager"] = {"error": f"exit code {process.returncode}: {last}"[:200]}
            finally:
                self._running.discard(process)
                _end(process)
        return row if self._ends_at else None


def _words(options: Any, cores: list[int]) -> list[str]:
    words = ["--trials", str(options.trials), "--cores", *map(str, cores)]
    words += ["--device", options.device, "--dtype", options.dtype]
    return words if options.seconds is None else [*words, "--seconds", str(options.seconds)]


def _end(process: subprocess.Popen[str]) -> None:
    """End a graph's process with all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
