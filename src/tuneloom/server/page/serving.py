"""Serving the page: one document under each of its addresses, and files that browsers may keep."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import Response

from tuneloom.report.drawing.kinds import KNOWN, patterns
from tuneloom.report.drawing.markup import Markup, el
from tuneloom.report.page import asset
from tuneloom.server.access.middleware import SAFE_HEADERS
from tuneloom.server.problems import Problem

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


ROUTER = APIRouter(include_in_schema=False)
ADDRESSES = (
    "/",
    "/login",
    "/submit",
    "/jobs/{job}",
    "/models",
    "/bank",
    "/devices",
    "/administration",
)
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_CSP = SAFE_HEADERS["content-security-policy"] + "; require-trusted-types-for 'script'; trusted-types 'none'"
"""Scripts can't turn text into markup at all: what users called something stays a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file of the page, ready to be sent."""

    content: bytes
    media_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'


@cache
def page_files() -> Mapping[str, PageFile]:
    """All files by name; what is not here is not served, whatever a path says."""
    found = dict(_below(files("tuneloom.server.page").joinpath("static"), ""))
    return found | {"report.css": _file("report.css", asset("page.css").encode())}


@cache
def _document() -> PageFile:
    modules = [name for name in page_files() if name.endswith(".js")]
    return PageFile(content=document(modules).encode(), media_type="text/html")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, PageFile]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        elif any(entry.name.endswith(ending) for ending in _MEDIA_TYPES):
            yield prefix + entry.name, _file(entry.name, entry.read_bytes())


def _file(name: str, content: bytes) -> PageFile:
    return PageFile(content=content, media_type=_MEDIA_TYPES[name[name.rfind(".") :]])


Known = Annotated[str | None, Header(alias="if-none-match", max_length=500)]


async def show_page(known: Known = None) -> Response:
    """The document; what it shows depends on its address, which its script reads."""
    return _answer(_document(), known)


for _address in ADDRESSES:
    ROUTER.get(_address, name="show_page")(show_page)


@ROUTER.get(FILES + "/{name:path}")
async def send_file(name: str, known: Known = None) -> Response:
    """A file of the page."""
    found = page_files().get(name)
    if found is None:
        raise Problem(404, "no such file")
    return _answer(found, known)


def _answer(file: PageFile, known: str | None) -> Response:
    headers = {"ETag": file.etag, "Cache-Control": "no-cache", "Content-Security-Policy": _CSP}
    if known is not None and file.etag in known:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
