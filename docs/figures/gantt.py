"""Draws a run's Gantt chart as a picture for the docs: the chart of its report, cut out.

python docs/figures/gantt.py RUN -o docs/figures/NAME.svg [--store PLACE]
"""

import argparse
import re
from importlib.resources import files
from pathlib import Path

from tuneloom.app.reports.reporting import report_data
from tuneloom.report.data import ReportData
from tuneloom.report.drawing.kinds import kinds_in_order, look_of
from tuneloom.report.sections.gantt import LEFT, WIDTH, gantt
from tuneloom.store import open_store

LEGEND = 34.0
STYLE = """
svg { background: #ffffff; font: 12.5px system-ui, sans-serif; }
text { fill: #1c1b19; } .row-name { text-anchor: end; font-weight: 600; }
.row-detail { text-anchor: end; fill: #6c675e; } .tick { text-anchor: middle; fill: #6c675e; }
.axis-name { text-anchor: middle; fill: #6c675e; font-style: italic; } .bar-label { text-anchor: middle; }
.grid { stroke: #ece8df; } .slot-rule { stroke: #ece8df; } .idle { fill: #ffffff; stroke: #dfdacf; }
.mark { shape-rendering: crispEdges; }
"""


def picture(data: ReportData) -> str:
    """The chart as a file of its own, with colours and a legend."""
    found = re.search(
        r"<svg(?P<attributes>[^>]*id=\"gantt-chart\"[^>]*)>(?P<body>.*?)</svg>", str(gantt(data)), re.S
    )
    assert found is not None, "the run has no recorded stages"
    height = float(re.search(r'viewBox="0 0 \S+ ([\d.]+)"', found["attributes"])[1])  # type: ignore[index]
    order = kinds_in_order(span.kind for span in data.spans)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height + LEGEND:g}">'
        f"<style>{STYLE}{_colours()}</style>{_legend(order)}"
        f'<g transform="translate(0 {LEGEND:g})">{found["body"]}</g></svg>\n'
    )


def _colours() -> str:
    css = (files("tuneloom.report") / "page.css").read_text()
    pairs = re.findall(r"--s(\d): (#\w+)", css.partition("@media")[0])
    return " ".join(f".k{n}, .s{n} {{ fill: {colour}; }}" for n, colour in pairs)


def _legend(order: list[str]) -> str:
    pieces, x = [], LEFT
    for kind in order:
        pieces.append(f'<rect class="s{look_of(kind, order)}" x="{x:g}" y="8" width="13" height="13"/>')
        pieces.append(f'<text x="{x + 19:g}" y="19">{kind}</text>')
        x += 40 + 7.5 * len(kind)
    return "".join(pieces)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw a run's Gantt chart for the docs.")
    parser.add_argument("run")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--store")
    options = parser.parse_args()
    store = open_store(options.store)
    data = report_data(store, options.run)
    store.close()
    options.out.write_text(picture(data))
    print(f"{options.out}: {len(data.spans)} stages")


if __name__ == "__main__":
    main()
