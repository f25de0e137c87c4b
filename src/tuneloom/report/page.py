"""The whole page, in one file that needs nothing else."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from tuneloom.report.data import ReportData
from tuneloom.report.drawing.kinds import patterns
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.sections.choices import choices_section
from tuneloom.report.sections.curves import curves_section, progress_section
from tuneloom.report.sections.failures import failures_section
from tuneloom.report.sections.gantt import gantt
from tuneloom.report.sections.headline import headline, masthead
from tuneloom.report.sections.kernels import kernels_section
from tuneloom.report.sections.measured import measured_section
from tuneloom.report.sections.reuse import reuse_section
from tuneloom.report.sections.tables import counter_table, task_table
from tuneloom.report.sections.usage import usage_section
from tuneloom.report.sections.validity import validity_section


def render_report(data: ReportData) -> str:
    """A complete HTML page: no network, light and dark, every text escaped.

    Parts without data are left out; the same data give the same page.
    """
    body = el(
        "body",
        patterns(),
        masthead(data),
        el("main", headline(data), _sections(data)),
        el("div", id="tip", role="tooltip", hidden="hidden"),
        el("script", asset("page.js")),
    )
    return document(data.run, body)


def document(title: str, body: Markup) -> str:
    """A body with its head: our style, and a policy under which only our script runs."""
    return f"<!doctype html>\n{el('html', _head(title), body, lang='en')}\n"


def _sections(data: ReportData) -> list[Markup]:
    return [
        section("Timeline of resources", gantt(data)),
        section("Utilisation and waiting", usage_section(data)),
        section("Progress", progress_section(data)),
        section("Kernels before and after", kernels_section(data)),
        section("Tuning curves", curves_section(data)),
        section("What the search chose", choices_section(data)),
        section("Device counters", counter_table(data)),
        section("Failures", failures_section(data)),
        section("Reused schedules", reuse_section(data)),
        section("Valid and invalid configurations", validity_section(data)),
        section("All tasks", task_table(data)),
        section("How it was measured", measured_section(data)),
    ]


def section(title: str, content: Markup) -> Markup:
    """A titled part of the page; nothing if it has no content."""
    if not content:
        return EMPTY
    identity = title.lower().replace(",", "").replace(" ", "-")
    return el("section", el("h2", title), content, id=identity)


def _head(title: str) -> Markup:
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy()),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · Tuneloom"),
        el("link", rel="icon", href="data:,"),
        el("style", asset("page.css")),
    )


@cache
def _policy() -> str:
    """Only our own script runs, and nothing is fetched."""
    digest = base64.b64encode(hashlib.sha256(asset("page.js").encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


@cache
def asset(name: str) -> Markup:
    """A file that ships with this package."""
    return Markup(files("tuneloom.report").joinpath(name).read_text(encoding="utf-8"))
