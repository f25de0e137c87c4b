"""What torch.compile(backend="tuneloom") costs beside Inductor: first answers, calls, background work.

python benchmarks/pytorch_backend.py [--trials 60] [--rounds 3]

Every first answer is one of a fresh process, with empty caches unless it says warm; the processes of both
backends take turns. Times of calls are taken in turn within one process, in one thread.
"""

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

import from_nothing  # noqa: F401

RESULTS = Path(__file__).parent / "results" / "pytorch_backend.json"
_ROUNDS, _CALLS = 400, 5
"""Few calls a round, so that some rounds are not interrupted where other programs run, too."""
_WINDOWS, _WINDOW_S = 12, 0.5
_READY_S = 60.0
"""How long a stored program is waited for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "NETWORK"), help="measure this here")
    options = parser.parse_args()
    if options.one:
        what, network = options.one
        torch.set_num_threads(1)
        with torch.no_grad():
            print(json.dumps(MEASURED[what](network, options.trials)))
        return 0
    found = {network: first_answers(network, options) for network in ("convolutions", "encoder")}
    with tempfile.TemporaryDirectory() as place:
        found["calls"] = in_a_process("calls", "small", options, Path(place))
        found["background"] = in_a_process("background", "convolutions", options, Path(place))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 0


def first_answers(network: str, options: Any) -> dict[str, float]:
    """Seconds to the first answer of fresh processes, medians, and ratios to Inductor with empty caches."""
    times: dict[str, list[float]] = {"inductor": [], "tuneloom": [], "inductor_warm": [], "tuneloom_warm": []}
    ready: list[float] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as place:
            for name in ("inductor", "tuneloom"):
                times[name].append(in_a_process(name, network, options, Path(place))["first_s"])
            in_a_process("tune", network, options, Path(place))
            for name in ("inductor", "tuneloom"):
                row = in_a_process(name, network, options, Path(place))
                times[f"{name}_warm"].append(row["first_s"])
                ready += [row["ready_s"]] if "ready_s" in row else []
    found = {f"{name}_s": median(each) for name, each in times.items()}
    cold = found["inductor_s"]
    return {
        **found,
        "ratio": found["tuneloom_s"] / cold,
        "ratio_warm": found["tuneloom_warm_s"] / cold,
        "ratio_warm_to_warm": found["tuneloom_warm_s"] / found["inductor_warm_s"],
        **({"second_process_ready_s": median(ready)} if ready else {}),
    }


def in_a_process(what: str, network: str, options: Any, place: Path) -> Any:
    words = [sys.executable, __file__, "--one", what, network, "--trials", str(options.trials)]
    own = {"TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"), "TUNELOOM_STORE": str(place / "store.db")}
    done = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        raise SystemExit(f"{what} {network}: {done.stderr[-2000:]}") from None


def model_of(network: str) -> tuple[Any, Any]:
    """A network with random weights, and an input."""
    torch.manual_seed(0)
    nn = torch.nn
    if network == "small":
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(1, 8)
    if network == "encoder":
        torch.backends.mha.set_fastpath_enabled(False)  # one operator for a layer, which stays in PyTorch
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval(), torch.randn(1, 64, 128)
    layers: list[Any] = []
    for inside, outside, stride in ((3, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)):
        convolution = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(outside), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)]
    return nn.Sequential(*layers, *head).eval(), torch.randn(1, 3, 96, 96)


def compiled(model: Any, backend: str, **options: Any) -> Any:
    own = {"options": {"store": os.environ["TUNELOOM_STORE"], **options}} if backend == "tuneloom" else {}
    return torch.compile(model, backend=backend, **own)


def first_of(backend: str) -> Callable[[str, int], dict[str, float]]:
    def first(network: str, trials: int) -> dict[str, float]:
        model, x = model_of(network)
        tuned, is_warm = listening(), Path(os.environ["TUNELOOM_STORE"]).exists()
        began = time.perf_counter()
        fast = compiled(model, backend, **({"trials": trials} if backend == "tuneloom" else {}))
        fast(x)
        row = {"first_s": time.perf_counter() - began}
        while backend == "tuneloom" and is_warm and not tuned and time.perf_counter() < began + _READY_S:
            fast(x)
        return {**row, **({"ready_s": tuned[0] - began} if tuned else {})}

    return first


def listening() -> list[float]:
    """The moments at which a tuned program took over; empty until then."""
    found: list[float] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "the tuned program is used" in record.getMessage():
                found.append(time.perf_counter())

    logger = logging.getLogger("tuneloom.pytorch")
    logger.setLevel(logging.INFO)
    logger.addHandler(Listener())
    return found


def tune(network: str, trials: int) -> dict[str, Any]:
    model, x = model_of(network)
    compiled(model, "tuneloom", trials=trials, mode="wait")(x)
    return {}


def calls(network: str, trials: int) -> dict[str, float]:
    """Microseconds of one call, of which kernels take less than one; both backends pay for dynamo."""
    model, x = model_of(network)
    ours, theirs = compiled(model, "tuneloom", trials=trials, mode="wait"), torch.compile(model)
    programs = {"eager": model, "inductor": theirs, "tuneloom": ours}
    for program in programs.values():
        for _ in range(20):
            program(x)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(_ROUNDS):
        for name, program in programs.items():
            began = time.perf_counter()
            for _ in range(_CALLS):
                program(x)
            times[name].append((time.perf_counter() - began) / _CALLS)
    return {f"{name}_us": min(each) * 1e6 for name, each in times.items()}


def background(network: str, trials: int) -> dict[str, float]:
    """How much slower calls are while tuning goes on; it is stopped and continued in turn."""
    model, x = model_of(network)
    fast = compiled(model, "tuneloom", trials=trials * 20)
    fast(x)
    while not (workers := descendants(os.getpid())):
        time.sleep(0.1)
    time.sleep(10)  # until it builds and measures
    rates: dict[str, list[float]] = {"tuning": [], "stopped": []}
    for _ in range(_WINDOWS):
        for name, signum in (("tuning", signal.SIGCONT), ("stopped", signal.SIGSTOP)):
            workers = descendants(os.getpid())
            for worker in workers:
                os.kill(worker, signum)
            rates[name].append(calls_in(lambda: model(x), _WINDOW_S))
    for worker in descendants(os.getpid()):
        os.kill(worker, signal.SIGCONT)
    pairs = [stopped / tuning for tuning, stopped in zip(rates["tuning"], rates["stopped"], strict=True)]
    return {"slowdown": median(pairs) - 1, "workers": len(workers)}


def calls_in(call: Callable[[], Any], seconds: float) -> float:
    """Calls a second of this process's CPU and wall-clock time."""
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        call()
        count += 1
    return count / (time.perf_counter() - began)


def descendants(process: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    path = Path(f"/proc/{process}/task")
    try:
        children = [int(one) for task in path.iterdir() for one in (task / "children").read_text().split()]
    except OSError:
        return []
    return [one for child in children for one in (child, *descendants(child))]


MEASURED: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "inductor": first_of("inductor"),
    "tuneloom": first_of("tuneloom"),
    "tune": tune,
    "calls": calls,
    "background": background,
}


if __name__ == "__main__":
    sys.exit(main())
