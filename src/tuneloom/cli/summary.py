"""What came out of a run, for people."""

from collections.abc import Sequence
from typing import Any

from tuneloom.app.runs.executing.in_process import RunOutcome
from tuneloom.model.opened import title_of
from tuneloom.store import JobRecord, JobStatus

_NOISE = 1.05
_NOT_USED = {
    "changed the outputs": "schedules dropped because they changed the outputs",
    "slower inside the model": "borrowed schedules dropped because they were slower inside the model",
    "trials failed": "kernels left untuned because their trials failed",
    "search ended": "kernels left untuned because their search failed",
}
"""What a note contains, and how the summary counts it."""


def print_outcome(outcome: RunOutcome) -> None:
    """One short paragraph for each job."""
    for job in outcome.jobs:
        print(job_line(job))
    print(f"run {outcome.run}; for a report: tuneloom report {outcome.run} -o report.html")


def job_line(job: JobRecord) -> str:
    """Before and after, speed-up, trials, failures, bundle."""
    result = job.result
    if job.status is JobStatus.FINISHED and "best" in result:
        return _kernel_line(job.name, result)
    if job.status is not JobStatus.FINISHED or "latency_after_s" not in result:
        notes = "".join(f"\n  note: {note}" for note in result.get("notes", ()))
        return f"{job.name}: {job.status.value}{_bundle(job)}{notes}"
    before, after = result["latency_before_s"], result["latency_after_s"]
    spread = _spread(result["latencies_after_s"])
    how = "as it is deployed" if "left_to_onnxruntime" in result else "tuned"
    text = f"{job.name}: {before * 1e3:.2f} ms untuned → {after * 1e3:.2f} ms {how} (±{spread:.0%})"
    text += f", {gained(before, after)}{_energy(result)}; {_trials(result)}"
    if "left_to_onnxruntime" in result:
        text = _left(job.name, result["left_to_onnxruntime"]) + f"\n  {text.removeprefix(job.name + ': ')}"
    elif "own_runtime" in result:
        text = _against(job.name, result["own_runtime"], spread) + f"\n  {text.removeprefix(job.name + ': ')}"
    text += _goal(result.get("goal")) + _by_shape(job)
    text += _bundle(job)
    text += "".join(f"\n  note: {note}" for note in result.get("notes", ()))
    for part in result.get("onnxruntime", ()):
        share = "" if part["share"] is None else f", {part['share']:.0%} of the time"
        runtime = title_of(
            part.get("runtime", "tflite" if part["file"].endswith(".tflite") else "onnxruntime")
        )
        text += f"\n  in {runtime}: {', '.join(part['operators'])}{share}"
    return text + _not_used([kernel["note"] for kernel in result["kernels"].values()])


def _bundle(job: JobRecord) -> str:
    written = job.status is JobStatus.FINISHED and job.spec.get("out")
    return f"\n  bundle: {written}" if written else ""


def _energy(result: Any) -> str:
    return f", {result['energy_j'] * 1e3:.3g} mJ a run" if "energy_j" in result else ""


def _against(name: str, own: Any, spread: float) -> str:
    """The comparison with what the user would run instead."""
    tuned, theirs = own["tuned_s"], own["latency_s"]
    times = f"{tuned * 1e3:.2f} ms tuned (±{spread:.0%})"
    return f"{name}: {times}, {title_of(own['name'])} takes {theirs * 1e3:.2f} ms: {compared(tuned, theirs)}"


def _left(name: str, left: Any) -> str:
    """What is left to ONNX Runtime, and why."""
    times = f"{left['latency_s'] * 1e3:.2f} ms against {left['tvm_s'] * 1e3:.2f} ms tuned"
    if left["whole"]:
        runtime = title_of(left.get("runtime", "onnxruntime"))
        return f"{name}: left in {runtime} as a whole, which is faster: {times} (--only-tvm prevents that)"
    alone = f"{left['onnxruntime_s'] * 1e3:.2f} ms in the fastest runtime alone"
    return f"{name}: partly left in ONNX Runtime, which makes it faster: {times}, {alone}"


def compared(ours_s: float, theirs_s: float) -> str:
    """How we stand against another runtime, in words; what is within the noise is a draw."""
    ratio = theirs_s / ours_s
    if 1 / _NOISE < ratio < _NOISE:
        return "as fast"
    return f"{ratio:.2f} times faster" if ratio > 1 else f"{1 / ratio:.2f} times slower"


def _by_shape(job: JobRecord) -> str:
    """A line for each set of shapes, if there are several: the times above are those of all together."""
    sets = [job.spec.get("shapes", {}), *job.spec.get("more_shapes", ())]
    labels = [", ".join(f"{name}={','.join(map(str, shape))}" for name, shape in one.items()) for one in sets]
    lines = []
    known = [f"size {size}" for size in job.result.get("sizes", ())] or labels
    for words, row in zip(known, job.result.get("by_shape", ()), strict=False):
        before, after = row["latency_before_s"] * 1e3, row["latency_after_s"] * 1e3
        lines.append(f"\n  {words}: {before:.2f} ms untuned → {after:.2f} ms tuned")
    return "".join(lines)


def _goal(goal: Any) -> str:
    if not goal or goal.get("wanted_s") is None:
        return ""
    words = "met" if goal["met"] else "missed"
    against = f" (ONNX Runtime: {goal['onnxruntime_s'] * 1e3:.2f} ms)" if "onnxruntime_s" in goal else ""
    return f"\n  goal of {goal['wanted_s'] * 1e3:.2f} ms {words}{against}"


def _not_used(notes: Sequence[str]) -> str:
    """Kernels that run without a schedule that was found for them, a line for each reason."""
    counts = {words: sum(sign in note for note in notes) for sign, words in _NOT_USED.items()}
    return "".join(f"\n  {words}: {count}" for words, count in counts.items() if count)


def gained(before_s: float, after_s: float) -> str:
    """How much faster, in words; what is within the noise is not called faster."""
    times = before_s / after_s
    return f"{times:.1f} times faster" if times >= _NOISE else "no faster"


def _kernel_line(name: str, result: Any) -> str:
    """The best configuration of a kernel with knobs, and what was learned."""
    knobs = ", ".join(f"{knob}={value}" for knob, value in result["best"].items())
    text = f"{name}: best {result['best_s'] * 1e3:.6g} ms with {knobs}"
    text += f"; {_trials(result)}"
    ranked = sorted(result.get("validity", {}).get("importance", {}).items(), key=lambda item: -item[1])
    if ranked:
        text += "\n  knobs by importance: " + ", ".join(f"{k} {share:.0%}" for k, share in ranked)
    if result["presampling_s"]:
        text += f"\n  presampling took {result['presampling_s']:.1f} s"
    return text


def _spread(times: list[float]) -> float:
    ordered = sorted(times)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return (high - low) / 2 / ordered[len(ordered) // 2]


def _trials(result: Any) -> str:
    made = result["trials"]
    return f"{made} trial{'' if made == 1 else 's'}{_failures(result)}"


def _failures(result: Any) -> str:
    failed = result.get("failures", {})
    return f" ({', '.join(f'{count} {kind}' for kind, count in failed.items())})" if failed else ""
