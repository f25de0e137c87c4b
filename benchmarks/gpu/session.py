"""Measures on a GPU machine everything that the pages show of GPUs, the most valuable first.

    python benchmarks/gpu/session.py [STEP …] [--seconds 570] [--folder FOLDER] [--copy FOLDER] [--commit ID]

For machines that are lent for some minutes a call: stops within so many seconds, keeps its results in
--folder, and goes on there when it is called again. Steps that are done are skipped, and a step is begun only
if the time that it needs at least is left. Every call copies the results to --copy. All rows of networks are
measured again; PyTorch's times are those of benchmarks/results. Afterwards, where the results are to stay:

    cp FOLDER/gpu_templates.jsonl FOLDER/gpu_reuse.jsonl FOLDER/gpu_pace.json benchmarks/results
    python benchmarks/gpu_models.py --join FOLDER/gpu_models.jsonl FOLDER/autotune.jsonl
    python benchmarks/tables.py
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]
RIVALS = "gpu_models.rivals.jsonl"
SEARCHED = ("resnet18:float16:1", "vit_s:float16:1", "encoder:float16:1")
"""Rows for which max-autotune is timed as well."""
LAST_GROUP_S = 240.0
"""What a group of networks takes at most that was begun when the budget was all but spent."""
TIME = "{seconds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, which may say TIME for what is left, and what it needs at least."""

    words: Sequence[str]
    least_s: float
    results: str = ""
    rows: int = 0
    """How many rows its results have when it is done; 0 if it is done when it ends well."""


STEPS = {
    "tests": Step(
        words=("-m", "pytest", "-q", "-m", "gpu", "--continue-on-collection-errors", "tests"), least_s=60.0
    ),
    "kernels": Step(
        words=("gpu_templates.py", "--count", "24", "--no-cases", "--rows"),
        least_s=150.0,
        results="gpu_templates.jsonl",
    ),
    "norms": Step(
        words=("gpu_norms.py", "--processes", "15", "--out"), least_s=90.0, results="gpu_norms.json"
    ),
    "models": Step(
        words=("gpu_models.py", "--together", "--ours-only", "--processes", "15", "--budget", TIME, "--out"),
        least_s=330.0,
        results="gpu_models.jsonl",
        rows=60,
    ),
    "reuse": Step(
        words=("gpu_reuse.py", "--only", "again", "transfer", "--out"),
        least_s=360.0,
        results="gpu_reuse.jsonl",
    ),
    "sharing": Step(
        words=("gpu_reuse.py", "--only", "share", "--out"), least_s=150.0, results="gpu_reuse.jsonl"
    ),
    "autotune": Step(
        words=(
            *("gpu_models.py", "--rivals-only", "--rivals-again", "--autotune", "150"),
            *("--only", *SEARCHED, "--out"),
        ),
        least_s=240.0,
        results="autotune.jsonl",
    ),
    "pace": Step(words=("gpu_pace.py", "--out"), least_s=300.0, results="gpu_pace.json"),
    "energy": Step(
        words=("gpu_reuse.py", "--only", "energy", "--out"), least_s=100.0, results="gpu_reuse.jsonl"
    ),
}
"""The most valuable first: what does not work need not be measured."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; all by default")
    parser.add_argument("--seconds", type=float, default=570.0, help="for this call")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/gpu-session"))
    parser.add_argument("--copy", type=Path, help="copy the results here")
    parser.add_argument("--commit", help="what is measured, where there is no repository")
    options = parser.parse_args()
    unknown = [name for name in options.steps if name not in STEPS]
    if unknown:
        parser.error(f"no step {', '.join(unknown)}; known: {', '.join(STEPS)}")
    if options.commit:
        os.environ["COMMIT"] = options.commit
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / RIVALS).is_file():
        shutil.copy(HERE / "results" / RIVALS, options.folder)
    ends = time.monotonic() + options.seconds
    for name in options.steps or STEPS:
        told = run(name, options.folder, ends)
        print(f"{name}: {told}", flush=True)
        if options.copy:
            shutil.copytree(options.folder, options.copy, dirs_exist_ok=True)


def run(name: str, folder: Path, ends: float) -> str:
    """Run a step in the time that is left, and say what became of it."""
    step, done, started = STEPS[name], folder / f"{name}.done", time.monotonic()
    if done.exists():
        return "done before"
    if ends - started < step.least_s:
        return f"needs {step.least_s:.0f} s, {ends - started:.0f} s are left"
    status = ended(command(step, folder, ends - started), folder / f"{name}.log", ends)
    if status is not None and status == 0 and rows_in(folder / step.results) >= step.rows:
        done.touch()
    how = {None: "stopped, as the time is over", 0: "ended well" if done.exists() else "rows are left"}
    return f"{how.get(status, f'failed with {status}')}, {time.monotonic() - started:.0f} s"


def command(step: Step, folder: Path, left_s: float) -> list[str]:
    budget = f"{left_s - LAST_GROUP_S:.0f}"
    words = [budget if word == TIME else word for word in step.words]
    program = words if words[0] == "-m" else [str(HERE / words[0]), *words[1:]]
    return [sys.executable, *program, *([str(folder / step.results)] if step.results else [])]


def ended(words: Sequence[str], log: Path, ends: float) -> int | None:
    """A command's exit code; None if it had to be stopped, with all that it started."""
    with log.open("ab") as file:
        child = subprocess.Popen(
            words, stdout=file, stderr=subprocess.STDOUT, cwd=HERE.parent, start_new_session=True
        )
    try:
        return child.wait(max(0.0, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)  # which its children hear of, too
        time.sleep(5.0)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return None


def rows_in(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.is_file() else 0


if __name__ == "__main__":
    main()
