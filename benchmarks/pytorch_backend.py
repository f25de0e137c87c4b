"""What torch.compile(backend="tuneloom") costs beside Inductor: first answers, calls, background work.

python benchmarks/pytorch_backend.py [--trials 20] [--seconds 200] [--out FILE]
python benchmarks/pytorch_backend.py --gpu

Every first answer is one of a fresh process, with empty caches unless it says warm; the processes of both
backends take turns, as often as there are seconds for. `dynamo_s` is the first answer of a backend that
compiles nothing. Times of calls are taken in turn within one process, in one thread. `--gpu` compares
answers and calls of models in float16 on a GPU instead.
"""

import argparse
import copy
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

import from_nothing  # noqa: F401
from tuneloom.app.farm.surveying import cpu_name

RESULTS = Path(__file__).parent / "results" / "pytorch_backend.json"
_ROUNDS, _CALLS = 400, 5
"""Few calls a round, so that some rounds are not interrupted where other programs run, too."""
_WINDOWS, _WINDOW_S = 12, 0.5
_READY_S = 60.0
"""How long a stored program is waited for."""
_NETWORKS = ("convolutions", "encoder")
_BEGUN_S = 5.0
"""How long tuning goes on before calls are timed beside it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=200.0, help="for first answers, at least a round")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "NETWORK"), help="measure this here")
    options = parser.parse_args()
    if options.one:
        what, network = options.one
        torch.set_num_threads(1)
        with torch.no_grad():
            print(json.dumps(MEASURED[what](network, options.trials)))
        return 0
    found: dict[str, Any] = {"cpu": cpu_name(), "PyTorch": torch.__version__}
    for name, measure in (on_a_gpu if options.gpu else on_a_cpu)(options):
        with tempfile.TemporaryDirectory() as place:
            found[name] = measure(Path(place))
        print(json.dumps({name: found[name]}), flush=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def on_a_cpu(options: Any) -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """What is measured, by name; calls and background work first, since they take the least time."""
    yield "calls", lambda place: in_a_process("calls", "small", options, place)
    yield "background", lambda place: in_a_process("background", "convolutions", options, place)
    for network in _NETWORKS:
        yield network, partial(first_answers, network, options)


def on_a_gpu(options: Any) -> Iterator[tuple[str, Callable[[Path], Any]]]:
    for network in _NETWORKS:
        yield network, partial(in_a_process, "gpu", network, options)


def first_answers(network: str, options: Any, place: Path) -> dict[str, Any]:
    """Seconds to the first answer of fresh processes, medians, and ratios to Inductor with empty caches."""
    times: dict[str, list[float]] = {}
    ready: list[float] = []
    ends = time.monotonic() + options.seconds / len(_NETWORKS)
    in_a_process("tune", network, options, place / "warm")
    in_a_process("inductor", network, options, place / "warm")
    rounds, took = 0, 0.0
    while not rounds or time.monotonic() + took < ends:
        began = time.monotonic()
        for name in ("inductor", "tuneloom", "dynamo"):
            row = in_a_process(name, network, options, place / str(rounds))
            times.setdefault(name, []).append(row["first_s"])
        for name in ("inductor", "tuneloom"):
            row = in_a_process(name, network, options, place / "warm")
            times.setdefault(f"{name}_warm", []).append(row["first_s"])
            ready += [row["ready_s"]] if "ready_s" in row else []
        rounds, took = rounds + 1, time.monotonic() - began
    found = {f"{name}_s": median(each) for name, each in times.items()}
    cold = found["inductor_s"]
    return {
        "rounds": rounds,
        **found,
        "ratio": found["tuneloom_s"] / cold,
        "ratio_warm": found["tuneloom_warm_s"] / cold,
        "ratio_warm_to_warm": found["tuneloom_warm_s"] / found["inductor_warm_s"],
        **({"second_process_ready_s": median(ready)} if ready else {}),
    }


def in_a_process(what: str, network: str, options: Any, place: Path) -> Any:
    """What a fresh process finds, with its caches in a folder."""
    place.mkdir(exist_ok=True)
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


def deployed(fast: Any, x: Any, decided: Callable[[], bool]) -> bool:
    """Call a model until a program was compared with PyTorch; False if none came."""
    ends = time.perf_counter() + _READY_S
    while not decided() and time.perf_counter() < ends:
        fast(x)
    return decided()


def first_of(backend: str) -> Callable[[str, int], dict[str, float]]:
    def first(network: str, trials: int) -> dict[str, float]:
        model, x = model_of(network)
        tuned, is_warm = listening("tuned"), Path(os.environ["TUNELOOM_STORE"]).exists()
        began = time.perf_counter()
        fast = compiled(model, backend, **({"trials": trials} if backend == "tuneloom" else {}))
        fast(x)
        row = {"first_s": time.perf_counter() - began}
        if backend == "tuneloom" and is_warm and deployed(fast, x, lambda: bool(tuned)):
            row["ready_s"] = tuned[0] - began
        return row

    return first


def listening(kind: str) -> list[float]:
    """The moments at which a program of this kind was used or found not to be faster; empty until then."""
    found: list[float] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if f"the {kind} program is" in record.getMessage():
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
    plain = compiled(copy.deepcopy(model), "eager")
    return in_turn({"eager": model, "dynamo": plain, "inductor": theirs, "tuneloom": ours}, x)


def in_turn(programs: dict[str, Any], x: Any) -> dict[str, float]:
    """Microseconds of the best calls of programs that take turns."""
    wait = torch.cuda.synchronize if x.is_cuda else lambda: None
    for program in programs.values():
        for _ in range(20):
            program(x)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(_ROUNDS):
        for name, program in programs.items():
            wait()
            began = time.perf_counter()
            for _ in range(_CALLS):
                program(x)
            wait()
            times[name].append((time.perf_counter() - began) / _CALLS)
    return {f"{name}_us": min(each) * 1e6 for name, each in times.items()}


def background(network: str, trials: int) -> dict[str, float]:
    """How much slower calls are while tuning goes on; it is stopped and continued in turn."""
    model, x = model_of(network)
    untuned = listening("untuned")
    fast = compiled(model, "tuneloom", trials=trials * 50)
    fast(x)
    ends = time.monotonic() + _READY_S
    while not untuned and time.monotonic() < ends:
        time.sleep(0.1)
        fast(x)
    time.sleep(_BEGUN_S)
    rates: dict[str, list[float]] = {"tuning": [], "stopped": []}
    for _ in range(_WINDOWS):
        for name, signum in (("tuning", signal.SIGCONT), ("stopped", signal.SIGSTOP)):
            workers = descendants(os.getpid())
            for worker in workers:
                os.kill(worker, signum)
            rates[name].append(calls_in(lambda: fast(x), _WINDOW_S))
    for worker in descendants(os.getpid()):
        os.kill(worker, signal.SIGCONT)
    pairs = [stopped / tuning for tuning, stopped in zip(rates["tuning"], rates["stopped"], strict=True)]
    per_call = {f"{name}_us": 1e6 / median(each) for name, each in rates.items()}
    return {
        "slowdown": median(pairs) - 1,
        "began_to_tune": bool(untuned),
        "workers": len(workers),
        **per_call,
    }


def on_gpu(network: str, trials: int) -> dict[str, Any]:
    """Differences of answers to eager ones, microseconds of a call, and whether inputs are read in place."""
    model, x = model_of(network)
    model, x = model.cuda().half(), x.cuda().half()
    tuned, began = listening("tuned"), time.perf_counter()
    ours, theirs = compiled(model, "tuneloom", trials=trials, mode="wait"), torch.compile(model)
    answers = {"eager": model(x), "inductor": theirs(x), "tuneloom": ours(x)}
    tuning_s = time.perf_counter() - began
    deployed(ours, x, lambda: bool(tuned))
    answers["tuneloom_in_use"] = ours(x)
    times = in_turn({"eager": model, "inductor": theirs, "tuneloom": ours}, x)
    exact = copy.deepcopy(model).double()(x.double())
    gaps = {f"{name}_error": float((y - exact).norm() / exact.norm()) for name, y in answers.items()}
    return {"tuning_s": tuning_s, "decided": bool(tuned), "copies": copied(ours, x), **times, **gaps}


def copied(fast: Any, x: Any) -> int:
    """How often a call copies between places of memory, as the profiler sees them."""
    kinds = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds) as seen:
        fast(x)
        torch.cuda.synchronize()
    return sum("memcpy" in event.name.lower() or "copy_" in event.name for event in seen.events())


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
    "dynamo": first_of("eager"),
    "inductor": first_of("inductor"),
    "tuneloom": first_of("tuneloom"),
    "tune": tune,
    "calls": calls,
    "background": background,
    "gpu": on_gpu,
}


if __name__ == "__main__":
    sys.exit(main())
