"""How stages are interleaved, and what that costs."""

from sections.drawing import Section, as_it_is, drawn_by

SECTIONS = (
    Section(
        results="policies_real.json",
        title="Policies, with real tuning",
        about="Three networks as jobs of one run, the same seeds and trials under each policy. `synchronous` "
        "starts the stages of all jobs at once, so its host can be busy more than once. "
        "Latencies are those of the models that all policies made, timed in turn when all runs were over.",
        command="benchmarks/policies_real.py",
        draw=drawn_by("policies_real.py", "--table"),
    ),
    Section(
        results="scheduler_overhead.json",
        title="What scheduling costs a single job",
        about="One job under `sequential` against a bare loop over the same stages.",
        command="benchmarks/scheduler_overhead.py",
        draw=drawn_by("scheduler_overhead.py", "--table"),
    ),
    Section(
        results="simulated_policies.json",
        title="Policies, simulated",
        about="Makespan against a lower bound (1 is perfect). `thesis`: select and update 44 s, build 8.3 s, "
        "profile 39.5 s a round, against the plain bound: the work of the busier resource, or the longest "
        "chain of one job. `mixed`: durations over two orders of magnitude, eight devices of three kinds, "
        "Poisson arrivals, fresh seeds; against a bound that also knows that chains have heads "
        "and tails, that parts do not divide, and that long turns do not fit into short gaps.",
        command="benchmarks/simulated_policies.py",
        draw=as_it_is,
    ),
    Section(
        results="core_overhead.json",
        title="Time and memory of the scheduling core",
        about="Decisions replayed from a simulation.",
        command="benchmarks/core_overhead.py",
        draw=as_it_is,
    ),
)
