"""Makes docs/benchmarks.md, its charts and the pages of tables of the raw results in benchmarks/results.

    python benchmarks/tables.py

Measures nothing. A section or chart whose results are not there is left out, so no number is older or
other than a results file. Results under a name that is unknown here are shown as they are.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from sections import (
    best,
    farm,
    gpus,
    graphs,
    kernels,
    models,
    networks,
    reuse,
    scheduling,
    service,
    transforms,
    trials,
)
from sections.charts import CHARTS, Chart, svg
from sections.drawing import HERE, Section, as_it_is

RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
INTRODUCTION = """\
# Benchmarks

Every number here comes from a file in `benchmarks/results`; `python benchmarks/tables.py` draws this page
and the tables behind it. Ratios come from one run on one machine, with both sides taking turns where that
is possible: absolute times of a shared machine drift by more than many of the differences shown.
"""
PAGES: dict[str, tuple[str, Sequence[Section]]] = {
    "networks": ("Networks on CPUs", (*best.SECTIONS, *networks.SECTIONS, *transforms.CPU_SECTIONS)),
    "gpus": ("Networks and kernels on GPUs", (*gpus.SECTIONS, *transforms.GPU_SECTIONS)),
    "graphs": ("Graphs of PyTorch models", graphs.SECTIONS),
    "trials": ("Trials and what they find", trials.SECTIONS),
    "models": ("Which models are imported", models.SECTIONS),
    "scheduling": ("Scheduling", scheduling.SECTIONS),
    "farm": ("Farms", farm.SECTIONS),
    "reuse": ("Reusing schedules", reuse.SECTIONS),
    "service": ("The service", service.SECTIONS),
    "kernels": ("Hand-written kernels", kernels.SECTIONS),
}
"""Pages of tables by name: their titles and what is on them."""
SECTIONS = tuple(section for _, sections in PAGES.values() for section in sections)


def results_of(name: str) -> Any:
    text = (RESULTS / name).read_text()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if name.endswith(".json") else None


def drawn(section: Section) -> str:
    data = results_of(section.results)
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


def chart(one: Chart) -> str:
    """Draws a chart beside the page; the answer is its part of the page."""
    bars = one.bars(results_of(one.results))
    place = DOCS / "figures" / "benchmarks" / f"{one.name}.svg"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(svg(bars, one.line))
    return (
        f"## {one.title}\n\n![{one.title}](figures/benchmarks/{one.name}.svg)\n\n"
        f"{one.say(bars)} [Tables](benchmarks/{one.page}.md)\n"
    )


def main() -> None:
    more = {"kernels": told(), "service": list(map(drawn, unknown()))}
    (DOCS / "benchmarks").mkdir(exist_ok=True)
    for name, (title, sections) in PAGES.items():
        there = [drawn(section) for section in sections if (RESULTS / section.results).exists()]
        text = "\n".join([f"# {title}\n", "[Benchmarks](../benchmarks.md)\n", *there, *more.get(name, [])])
        (DOCS / "benchmarks" / f"{name}.md").write_text(text)
    charts = [chart(one) for one in CHARTS if (RESULTS / one.results).exists()]
    links = [f"- [{title}](benchmarks/{name}.md)" for name, (title, _) in PAGES.items()]
    (DOCS / "benchmarks.md").write_text("\n".join([INTRODUCTION, *charts, "## All tables\n", *links, ""]))
    missing = [section.results for section in SECTIONS if not (RESULTS / section.results).exists()]
    print(f"{len(charts)} charts, {len(PAGES)} pages; without results: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
