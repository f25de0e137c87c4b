"""Several machines as one."""

from collections.abc import Mapping
from typing import Any

from sections.drawing import Rows, Section, figure, number, one_row, table


def farm_against_local(data: Mapping[str, Any]) -> str:
    columns = ("pair", "local, trials a minute", "ray, trials a minute", "ratio")
    rows = [
        (
            pair["pair"] + 1,
            number(pair["local"]["trials_per_minute"]),
            number(pair["ray"]["trials_per_minute"]),
            number(pair["ratio"]),
        )
        for pair in data["pairs"]
    ]
    where = f"{data['model']}, {data['machine']}, {data['cores']} cores, load {data['load']:.1f}"
    return f"{table(columns, rows)}\n\nMedian ratio: {data['ratio']:.3f}; {where}."


def farm_makespan(rows: Rows) -> str:
    columns = ("case", "jobs", "trials", "makespan", "bound", "makespan / bound")
    lines = [
        (
            row["case"],
            row["jobs"],
            row["trials"],
            *(f"{row[key]:.1f} s" for key in ("makespan_s", "bound_s")),
            f"{row['ratio']:.3f}",
        )
        for row in rows
    ]
    stages = ", ".join(f"{kind} {seconds:g} s" for kind, seconds in rows[0]["stages_s"].items())
    return f"{table(columns, lines)}\n\nStages: {stages}."


def farm_kills(pieces: Rows) -> str:
    kinds = ("agents", "workers", "machines", "drivers")
    columns = (
        "model",
        "kills",
        *kinds,
        "jobs",
        "not ended",
        "trials",
        "lost",
        "doubled",
        "too many",
        "failures",
    )
    rows = [
        (
            piece["model"],
            piece["kills"],
            *(piece[f"killed_{kind}"] for kind in kinds),
            *(piece[key] for key in ("jobs", "jobs_not_finished", "trials", "lost", "doubled", "too_many")),
            figure(piece["failures"]),
        )
        for piece in pieces
    ]
    sums = [sum(values) for values in zip(*(row[1:-1] for row in rows), strict=True)]
    return table(columns, [*rows, ("all", *sums, "")])


def farm_gpu(data: Mapping[str, Any]) -> str:
    columns = ("engine", "trials", "before", "after", "trials a minute")
    rows = [
        (
            engine,
            pair[engine]["trials"],
            *(f"{pair[engine][key] * 1e3:.3f} ms" for key in ("latency_before_s", "latency_after_s")),
            number(pair[engine]["trials_per_minute"]),
        )
        for pair in data["pairs"]
        for engine in ("local", "ray")
    ]
    told = f"Ray's trials a minute against local ones: {data['ratio']:.3f}, {data['device']}."
    return f"{table(columns, rows)}\n\n{told}"


SECTIONS = (
    Section(
        results="farm_makespan.json",
        title="A farm of three machines against its bound",
        about="Eight mock jobs on three simulated nodes of Ray, each with 4 slots and two devices; stages "
        "take known times and need no core. In the second run a machine is killed after a third of the time, "
        "and a new one joins. The bound takes into account which machines were present when.",
        command="benchmarks/farm_makespan.py",
        draw=farm_makespan,
    ),
    Section(
        results="farm_scale.json",
        title="A large farm, simulated",
        about="10,000 jobs on 200 machines with 1,000 devices of 20 kinds that come and go, in simulated "
        "time with the real scheduling core.",
        command="benchmarks/farm_scale.py",
        draw=one_row,
    ),
    Section(
        results="farm_driver.json",
        title="What one driver carries",
        about="1,000 mock devices on four real agents, which run on the same two cores; the driver's own CPU "
        "time per trial, store included. `load` is the machine's load average: what else ran there took "
        "wall-clock time, and some CPU time, from the driver.",
        command="benchmarks/farm_driver.py",
        draw=one_row,
    ),
    Section(
        results="farm_kills.json",
        title="Kills on a farm",
        about="Agents, workers, machines and the driver killed at random moments. `lost`: trials that are "
        "missing at the end; `doubled`: there more than once. A killed worker costs its candidate a failed "
        "trial. `network` is a real one that TVM tunes.",
        command="benchmarks/farm_kills.py",
        draw=farm_kills,
    ),
    Section(
        results="farm_against_local.json",
        title="One machine with Ray and without",
        about="The same model and seeds, alternately; trials a minute while tuning. Ray's own processes share"
        " the cores with builds.",
        command="benchmarks/farm_against_local.py",
        draw=farm_against_local,
    ),
    Section(
        results="farm_against_local_mock.json",
        title="One machine with Ray and without: what messages cost",
        about="The same with mock stages that only wait, so that other programs barely interfere: what "
        "remains is the round trip to the agent.",
        command="benchmarks/farm_against_local.py",
        draw=farm_against_local,
    ),
    Section(
        results="farm_gpu.json",
        title="A GPU through Ray and without",
        about="The same model, seed and GPU, alternately; the model's median latency before and after.",
        command="benchmarks/farm_gpu.py",
        draw=farm_gpu,
    ),
)
