"""The document that every address of the page answers with; its script shows the view of the address."""

from collections.abc import Iterable

from tuneloom.report.drawing.kinds import KNOWN, patterns
from tuneloom.report.drawing.markup import Markup, el

FILES = "/page"


def document(modules: Iterable[str]) -> str:
    """The whole document; all modules are fetched at once, not one after another as they are found."""
    return f"<!doctype html>\n{el('html', _head(sorted(modules)), _body(), lang='en')}\n"


def _head(modules: Iterable[str]) -> Markup:
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", "Tuneloom"),
        el("link", rel="icon", href=f"{FILES}/logo.svg", type="image/svg+xml"),
        el("link", rel="stylesheet", href=f"{FILES}/report.css"),
        el("link", rel="stylesheet", href=f"{FILES}/page.css"),
        [el("link", rel="modulepreload", href=f"{FILES}/{name}") for name in modules],
        el("script", type="module", src=f"{FILES}/main.js"),
    )


def _body() -> Markup:
    return el(
        "body",
        el("a", "Skip to content", href="#main", class_="skip"),
        patterns(),
        el("div", id="app"),
        el("noscript", el("p", "This page needs JavaScript. Everything it shows is in the API, too.")),
        el("div", id="tip", role="tooltip", hidden="hidden"),
        data_kinds=" ".join(KNOWN),
    )
