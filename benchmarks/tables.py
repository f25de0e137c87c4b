"""Makes docs/benchmarks.md of the raw results in benchmarks/results; measures nothing.

    python benchmarks/tables.py

A section whose results are not there is left out, so no number on the page is older or
other than a results file. Results under a name that is unknown here are shown as they are.
"""

import json
import re
from typing import Any

from sections import farm, gpus, kernels, models, networks, reuse, scheduling, service, trials
from sections.drawing import HERE, Section, as_it_is

RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

This page is made by `python benchmarks/tables.py` from the raw results in `benchmarks/results`; what was
not measured is not here. Ratios come from one run on one machine, with both sides taking turns where that
is possible: absolute times of a shared machine drift by more than many of the differences shown.
"""
SECTIONS = (
    *trials.SECTIONS,
    *networks.SECTIONS,
    *gpus.SECTIONS,
    *scheduling.SECTIONS,
    *farm.SECTIONS,
    *reuse.SECTIONS,
    *models.SECTIONS,
    *service.SECTIONS,
    *kernels.SECTIONS,
)


def drawn(section: Section) -> str:
    text = (RESULTS / section.results).read_text()
    data: Any = None
    if section.results.endswith(".json"):
        data = json.loads(text)
    elif section.results.endswith(".jsonl"):
        data = [json.loads(line) for line in text.splitlines()]
    about = f"{section.about}\n\n" if section.about else ""
    return (
        f"## {section.title}\n\n{about}{section.draw(data)}\n\n"
        f"Measured by `python {section.command}`, raw results in `benchmarks/results/{section.results}`.\n"
    )


def unknown() -> list[Section]:
    """Results that no section above names."""
    named = {section.results for section in SECTIONS}
    return [
        Section(
            results=path.name,
            title=path.stem.replace("_", " ").capitalize(),
            about="",
            command=f"benchmarks/{path.stem}.py",
            draw=as_it_is,
        )
        for path in sorted(RESULTS.glob("*.json"))
        if path.name not in named
    ]


def told() -> list[str]:
    """Results that a benchmark tells in its own words, one level down."""
    texts = [path.read_text().strip() for path in sorted(RESULTS.glob("*.md"))]
    return [re.sub(r"^#", "##", text, flags=re.M) + "\n" for text in texts]


def main() -> None:
    there = [s for s in (*SECTIONS, *unknown()) if (RESULTS / s.results).exists()]
    PAGE.write_text("\n".join([INTRODUCTION, *map(drawn, there), *told()]))
    missing = [s.results for s in SECTIONS if s not in there]
    print(f"{PAGE.name}: {len(there)} sections; without results: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
