"""Networks on a GPU against torch.compile, one row for each network, number type and batch.

    python benchmarks/gpu_models.py [--only NAME[:DTYPE[:BATCH]] …] [--budget SECONDS] [--trials 1000]
        [--seconds 60] [--processes 8] [--autotune SECONDS] [--again] [--rivals-again] [--rivals-only]
        [--ours-only] [--join FILE …] [--together] [--store FILE] [--layout NAME] [--out FILE.jsonl]

Needs an NVIDIA GPU, PyTorch, torchvision and Triton. For each row: eager execution and
torch.compile(mode="reduce-overhead") in both memory formats, with --autotune also mode="max-autotune" for at
most so many seconds; then `tuneloom tune` from an empty store (--store FILE: from what that has), and the
bundle's own times and outputs. TF32 is off on both sides. Everything is timed in the same way: single runs
with inputs on the GPU, each waited for, in a process that has the GPU to itself.

Programs are exported and PyTorch's code is compiled for --processes rows at once; the first of these is timed
when all are compiled. With --together they are then tuned as one run, and each row's time of tuning is its
part of the run's. Rows are appended to the results as they come, and PyTorch's times to FILE.rivals.jsonl;
--rivals-only writes nothing else, --ours-only uses what is there. Rows that the results have are skipped;
with --again only PyTorch's times are taken from there. A row is begun only if the budget leaves time for it.
"""

import argparse
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import from_nothing  # noqa: F401

RESULTS = Path(__file__).parent / "results" / "gpu_models.jsonl"
PREPARE_S, TIMING_S, MEASURE_S, FINISH_S = 240.0, 10.0, 120.0, 240.0
SIDE_BY_SIDE = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Each of several processes has a core: pools of their own would fight for all of them."""
SEARCHING = {"TORCHINDUCTOR_COMPILE_THREADS": "4"}
"""How long parts of a row may take; what comes after the seconds of tuning is the last."""
COMPILED, SEARCHED = "reduce-overhead", "max-autotune"
"""The modes of torch.compile, which are parts of a row as well."""
WORTHWHILE = 1.5
"""A row is begun if the budget leaves so many times its seconds of tuning."""


TOGETHER, TOGETHER_STORE = "together", "together.db"
PACE_ALONE = ("trials_a_minute", "after_a_minute")
"""What says nothing of a network that others were tuned beside."""


def main() -> None:
    options = parsed()
    if options.join:
        join(options.join, options.out)
        return
    from gpu.networks import Row, rows

    if options.part:
        one_part(options.part, Row.read(options.only[0]), options)
        return
    require_gpu()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("gpu_models.py: stopped"))
    wanted = rows(options.only)
    known = {row_name(found): found for found in [*read(rivals_file(options.out)), *read(options.out)]}
    if options.rivals_only:
        wanted = [row for row in wanted if options.rivals_again or not rivals_of(known, row)]
    elif not options.again:
        wanted = [row for row in wanted if "ratio" not in known.get(str(row), {})]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        compare_all(wanted, known, folder, options)


def parsed() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME[:DTYPE[:BATCH]]")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds for everything")
    parser.add_argument("--trials", type=int, default=1000, help="trials for a row")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of tuning for a row")
    parser.add_argument("--processes", type=int, default=8, help="rows that are prepared at once")
    parser.add_argument("--autotune", type=float, default=0.0, help="seconds for mode max-autotune")
    parser.add_argument("--store", help="tune all rows with this store")
    parser.add_argument("--layout", default="blocked", help="tensor layout, as tuneloom tune takes it")
    parser.add_argument("--again", action="store_true", help="tune rows again that the results have")
    parser.add_argument("--rivals-again", action="store_true", help="time PyTorch again as well")
    parser.add_argument("--rivals-only", action="store_true", help="time PyTorch alone")
    parser.add_argument("--join", nargs="+", type=Path, help="measure nothing, add the rows of these results")
    parser.add_argument("--ours-only", action="store_true", help="never time PyTorch")
    parser.add_argument("--together", action="store_true", help="tune the rows of a group as one run")
    parser.add_argument("--folder", type=Path, help="keep programs and bundles here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


def require_gpu() -> None:
    from tuneloom.gpus import visible_gpus

    if not visible_gpus():
        sys.exit("gpu_models.py: no NVIDIA GPU found here")


def one_part(part: str, row: Any, options: Any) -> None:
    """What a process for one part of a row does; others don't wait for one that failed."""
    folder, group = options.folder, options.processes
    try:
        if part == "measure":
            from gpu.ours import measure

            (folder / f"{row.file}.measure.json").write_text(json.dumps(measure(row, folder, group)))
        else:
            from gpu.rivals import run_part

            run_part(part, row, folder, group, program=not options.rivals_only)
            if part != "export":
                append(rivals_file(options.out), about(row) | {"rivals": torch_times(row, folder)})
    finally:
        (folder / f"{row.file}.{part}.ready").touch()


def compare_all(wanted: Sequence[Any], known: Mapping[str, Any], folder: Path, options: Any) -> None:
    """Row by row until the budget is spent; some are prepared together."""
    ends = time.monotonic() + options.budget
    done = 0
    for first in range(0, len(wanted), options.processes):
        group = wanted[first : first + options.processes]
        fresh = [row for row in group if options.rivals_again or not rivals_of(known, row)]
        if options.ours_only:
            fresh = []
        if time.monotonic() + WORTHWHILE * options.seconds > ends:
            break
        prepare(group, fresh, folder, options)
        rivals = {row: torch_times(row, folder) if row in fresh else rivals_of(known, row) for row in group}
        if options.rivals_only:
            done += sum(bool(times) for times in rivals.values())
            continue
        if options.together:
            tune_together(group, folder, options)
            measure([row for row in group if (folder / f"{row.file}.bundle").is_dir()], folder, options)
        for row in group:
            if not options.together and time.monotonic() + WORTHWHILE * options.seconds > ends:
                break
            found = compared(row, rivals[row], folder, options)
            append(options.out, found)
            print(told(found), flush=True)
            done += 1
    if done < len(wanted):
        print(f"{len(wanted) - done} rows left: {', '.join(map(str, wanted[done:]))}")


def rivals_file(out: Path) -> Path:
    """Where PyTorch's times are kept as soon as they are known: ours may fail."""
    return out.with_suffix(".rivals.jsonl")


def about(row: Any) -> dict[str, Any]:
    return {"network": row.network, "dtype": row.dtype, "batch": row.batch, "tf32": False}


def rivals_of(known: Mapping[str, Any], row: Any) -> list[dict[str, Any]]:
    """PyTorch's times in the results; none if nothing ran."""
    found = known.get(str(row), {}).get("rivals", [])
    return found if any("seconds" in one for one in found) else []


def prepare(group: Sequence[Any], fresh: Sequence[Any], folder: Path, options: Any) -> None:
    """Export programs, and have PyTorch's modes compiled side by side and timed one by one.

    What fails shows up where it is used. A process that compiles exports first, if that is to be done.
    """
    started = time.monotonic()
    for old in folder.glob("*.ready"):
        old.unlink()
    missing = [row for row in group if row not in fresh and not (folder / f"{row.file}.pt2").is_file()]
    running = [part_of("export", row, folder, options, {"CUDA_VISIBLE_DEVICES": ""}) for row in missing]
    running += [part_of(COMPILED, row, folder, options, group=len(fresh)) for row in fresh]
    for child in running:
        wait(child, started + PREPARE_S + TIMING_S * len(fresh) - time.monotonic())
    if options.autotune:
        searching = [part_of(SEARCHED, row, folder, options, SEARCHING, len(fresh)) for row in fresh]
        for child in searching:
            wait(child, options.autotune)
    print(f"prepared {len(group)} rows in {time.monotonic() - started:.0f} s", flush=True)


def compared(row: Any, rivals: list[dict[str, Any]], folder: Path, options: Any) -> dict[str, Any]:
    """One row; where a part fails, what was found before it and why."""
    found = about(row) | {"rivals": rivals}
    found |= {"torch": version("torch"), "tvm": version("apache-tvm"), "commit": commit()}
    try:
        found |= tuned(row, folder, options) if not options.together else one_of_many(row, folder, options)
        if not options.together:
            measure([row], folder, options)
        found |= measured(row, folder)
    except PartFailed as error:
        found["error"] = str(error)
    return against_best(found)


def against_best(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with what the best of PyTorch's compiled modes takes, and the ratio, as far as they are known."""
    compiled = (one for one in row["rivals"] if is_compiled(one))
    best: dict[str, Any] = min(compiled, key=lambda one: one["seconds"], default={})
    if not best:
        return dict(row)
    found = {**row, "torch_s": best["seconds"], "torch_mode": f"{best['mode']}, {best['layout']}"}
    found["torch_difference"] = best.get("difference")
    return found | ({"ratio": row["ours_s"] / best["seconds"]} if "ours_s" in row else {})


def join(files: Sequence[Path], out: Path) -> None:
    """Add the rows of other results, and PyTorch's times, to some results; of equal rows the last counts."""
    every = [found for file in (out, *files) for found in (*read(file), *read(rivals_file(file)))]
    timed = {row_name(found): found for found in every if any(map(is_compiled, found["rivals"]))}
    ours = {row_name(found): found for found in every if "ours_s" in found}
    rows = [against_best({**row, "rivals": timed.get(name, row)["rivals"]}) for name, row in ours.items()]
    names = ("network", "dtype", "batch", "tf32", "rivals")
    rivals = [{name: found[name] for name in names} for found in timed.values()]
    for path, lines in ((out, rows), (rivals_file(out), rivals)):
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    print(f"{len(rows)} rows, {sum('ratio' in row for row in rows)} with a ratio")


def measure(rows: Sequence[Any], folder: Path, options: Any) -> None:
    """Load bundles side by side and time them one by one; each leaves a file."""
    for old in folder.glob("*.measure.*"):
        old.unlink()
    children = [part_of("measure", row, folder, options, group=len(rows)) for row in rows]
    for child in children:
        wait(child, MEASURE_S)


def measured(row: Any, folder: Path) -> dict[str, Any]:
    """What measuring a bundle left; raises PartFailed."""
    try:
        found: dict[str, Any] = json.loads((folder / f"{row.file}.measure.json").read_text())
    except FileNotFoundError as error:
        raise PartFailed(f"measure: {last_line(folder / f'{row.file}.measure.log')}") from error
    return found


def is_compiled(rival: Mapping[str, Any]) -> bool:
    return "seconds" in rival and rival["mode"] != "eager"


def torch_times(row: Any, folder: Path) -> list[dict[str, Any]]:
    """What PyTorch's modes take, as far as they got."""
    files = [folder / f"{row.file}.{mode}.jsonl" for mode in (COMPILED, SEARCHED)]
    return [one for file in files if file.is_file() for one in read(file)]


def tuned(row: Any, folder: Path, options: Any) -> dict[str, Any]:
    """Tune a program by the command line; raises PartFailed."""
    program, bundle = folder / f"{row.file}.pt2", folder / f"{row.file}.bundle"
    if not program.is_file():
        raise PartFailed(f"not exported: {last_line(folder / f'{row.file}.export.log')}")
    subprocess.run(["rm", "-rf", str(bundle)], check=True)
    place = options.store or str(folder / f"{row.file}.{os.getpid()}.db")
    command = [sys.executable, "-m", "tuneloom", "tune", str(program), "--target", "cuda", "--json"]
    command += [
        "--trials",
        str(options.trials),
        "--seconds",
        str(options.seconds),
        "--layout",
        options.layout,
    ]
    log, started = folder / f"{row.file}.tune.log", time.time()
    # PyTorch was timed already: the command need not compare with it as well.
    environment = {"TORCH_COMPILE_DISABLE": "1"}
    child = begun([*command, "--out", str(bundle), "--store", place], log, environment)
    finished(child, options.seconds + FINISH_S, log)
    took_s = time.time() - started
    from gpu.ours import tuning

    return {"tuning_s": took_s, **tuning(place, started)}


def tune_together(group: Sequence[Any], folder: Path, options: Any) -> None:
    """Tune several programs as jobs of one run, which share cores and GPU; those that fail have no bundle."""
    programs = [folder / f"{row.file}.pt2" for row in group]
    place, out = store_of_all(folder, options), folder / TOGETHER
    stores = () if options.store else folder.glob(f"{TOGETHER_STORE}*")
    for old in (out, *stores, *(folder / f"{row.file}.bundle" for row in group)):
        subprocess.run(["rm", "-rf", str(old)], check=True)
    words = ["tune", *map(str, filter(Path.is_file, programs)), "--target", "cuda", "--out", str(out)]
    words += ["--trials", str(options.trials), "--seconds", str(options.seconds), "--layout", options.layout]
    words += ["--store", place, "--json"]
    log, started = folder / "together.log", time.time()
    child = begun([sys.executable, "-m", "tuneloom", *words], log, {"TORCH_COMPILE_DISABLE": "1"})
    with suppress(PartFailed):  # every row tells what became of it
        finished(child, options.seconds + len(group) * FINISH_S, log)
    facts = {"rows": len(group), "took_s": time.time() - started, "started": started}
    (folder / "together.json").write_text(json.dumps(facts))
    for row in group:
        if (out / row.file).is_dir():
            (out / row.file).rename(folder / f"{row.file}.bundle")


def store_of_all(folder: Path, options: Any) -> str:
    """The store of rows that are tuned together."""
    return options.store or str(folder / TOGETHER_STORE)


def one_of_many(row: Any, folder: Path, options: Any) -> dict[str, Any]:
    """How the tuning of one program went, and of how many it was one; raises PartFailed."""
    from gpu.ours import tuning

    facts = json.loads((folder / "together.json").read_text())
    if not (folder / f"{row.file}.bundle").is_dir():
        raise PartFailed(f"no bundle: {last_line(folder / 'together.log')}")
    about = {"together": facts["rows"], "tuning_s": facts["took_s"] / facts["rows"]}
    found = tuning(store_of_all(folder, options), facts["started"], row.file)
    return about | {name: value for name, value in found.items() if name not in PACE_ALONE}


class PartFailed(Exception):  # noqa: N818 - the name is the message
    """A part of a row did not end well; the text says which and why."""


def part_of(
    part: str,
    row: Any,
    folder: Path,
    options: Any,
    environment: Mapping[str, str] | None = None,
    group: int = 1,
) -> "subprocess.Popen[bytes]":
    """Begin a part of a row in a process of its own; so many rows of a group do the same."""
    command = [sys.executable, __file__, "--part", part, "--only", str(row), "--folder", str(folder)]
    command += ["--processes", str(group), "--out", str(options.out)]
    command += ["--rivals-only"] if options.rivals_only else []
    return begun(command, folder / f"{row.file}.{part}.log", {**SIDE_BY_SIDE, **(environment or {})})


def begun(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with log.open("wb") as file:
        child = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=os.environ | environment,
            start_new_session=True,
        )  # fmt: skip
    atexit.register(wait, child, 0.0)  # nobody times anything beside what was left behind
    return child


def finished(child: "subprocess.Popen[bytes]", limit_s: float, log: Path) -> None:
    """Wait for a part that has to end well; raises PartFailed."""
    part = log.stem.rpartition(".")[2]
    if not wait(child, limit_s):
        raise PartFailed(f"{part}: not done after {limit_s:.0f} s")
    if child.returncode:
        raise PartFailed(f"{part}: {last_line(log)}")


def wait(child: "subprocess.Popen[bytes]", limit_s: float) -> bool:
    """Whether a process ended in time; one that did not is ended with everything that it started."""
    try:
        child.wait(max(0.0, limit_s))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return False
    return True


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
    return lines[-1][:300] if lines else "no message"


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def commit() -> str:
    """The commit that is measured; COMMIT says which where there is no repository."""
    if "COMMIT" in os.environ:
        return os.environ["COMMIT"]
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, none if it is not there; a line that was cut off does not count."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def append(path: Path, row: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        print(json.dumps(row), file=file, flush=True)


def row_name(row: Mapping[str, Any]) -> str:
    return f"{row['network']}:{row['dtype']}:{row['batch']}"


def told(row: Mapping[str, Any]) -> str:
    """A row in one line."""
    words = [row_name(row)]
    if "torch_s" in row:
        words.append(f"torch.compile {row['torch_s'] * 1e3:.3f} ms ({row['torch_mode']})")
    if "ours_s" in row:
        words.append(f"ours {row['ours_s'] * 1e3:.3f} ms")
    if "ratio" in row:
        words.append(f"ratio {row['ratio']:.2f}")
    for name, form in (
        ("tuning_s", "{:.0f} s of tuning"), ("trials", "{} trials"), ("trials_a_minute", "{:.0f} a minute"),
        ("gpu_busy", "GPU busy {:.0%}"), ("after_a_minute", "after a minute {:.2f} of the final time"),
        ("difference", "outputs differ by {:.1e}"), ("torch_difference", "torch.compile's by {:.1e}"),
        ("error", "{}"),
    ):  # fmt: skip
        if row.get(name) is not None:
            words.append(form.format(row[name]))
    words += [f"{one['mode']} {one['layout']}: {one['error']}" for one in row["rivals"] if "error" in one]
    return ", ".join(words)


if __name__ == "__main__":
    main()
