"""What is kept, and what it is worth to later runs."""

from sections.drawing import Section, as_it_is, drawn_by

SECTIONS = (
    Section(
        results="store_kills.json",
        title="Kills at random moments",
        about="Writers killed with SIGKILL while they commit trials. `lost`: acknowledged, but gone; "
        "`doubled`: there more than once; `unacknowledged`: committed, but killed before they could say so.",
        command="benchmarks/store_kills.py",
        draw=as_it_is,
    ),
    Section(
        results="store_bank.json",
        title="Asking a bank of 100,000 records",
        about="Medians in milliseconds, SQLite on a disk.",
        command="benchmarks/store_bank.py",
        draw=as_it_is,
    ),
    Section(
        results="sharing.json",
        title="Sharing inside a model",
        about="Performance of the whole model against full tuning of every task, both bundles timed "
        "alternately, and the fraction of the tuning time, planning included.",
        command="benchmarks/sharing.py",
        draw=drawn_by("sharing.py", "--table"),
    ),
    Section(
        results="transfer.json",
        title="Transfer between models",
        about="Each model with the others as bank, against plain tuning over time: whole models as of each "
        "moment, run alternately. Plain tuning begins with templates' first guesses; the last column says "
        "how little they may leave to gain. Two x86 cores with AVX-512.",
        command="benchmarks/transfer.py",
        draw=drawn_by("transfer.py", "--table"),
    ),
    Section(
        results="first_answer.json",
        title="A first answer without trials",
        about="A network that is not in the starter bank, with `--trials 0` and after hundreds of trials, "
        "both from an empty store with what comes with it. `at_once_s` and `tuned_s` are whole commands; "
        "both bundles run in turns. At most 20 s and a ratio of 1.15 are wanted.",
        command="benchmarks/first_answer.py zoo:inception_v1",
        draw=as_it_is,
    ),
    Section(
        results="opening.json",
        title="Opening a model",
        about="CPU seconds of `tuneloom tasks` on a file, from an empty home and once more: imports of "
        "Python, PyTorch and TVM included. At most 10 and 2 are wanted. The files are graphs of GraphNet, "
        "exported.",
        command="benchmarks/opening.py FILE...",
        draw=as_it_is,
    ),
    Section(
        results="planning.json",
        title="Planning with a large bank",
        about="Clusters, donors and fits for a model, nothing measured.",
        command="benchmarks/planning.py",
        draw=as_it_is,
    ),
)
