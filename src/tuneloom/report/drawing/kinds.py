"""Stage kinds and how they look: each has a colour and a pattern of its own."""

from collections.abc import Iterable

from tuneloom.model import StageKind
from tuneloom.report.drawing.markup import Markup, el

KNOWN = tuple(kind.value for kind in StageKind)
LOOKS = 10
TILE = 8

TEXTURES = (
    ("M0 4H8",),
    ("M2 2h.01M6 6h.01",),
    ("M-2 2L2 -2M0 8L8 0M6 10L10 6",),
    (),
    ("M2 0V8M6 0V8",),
    ("M0 0L8 8M8 0L0 8",),
    ("M0 2H8M0 6H8",),
    ("M-2 6L2 10M0 0L8 8M6 -2L10 2",),
    ("M4 0V8M0 4H8",),
    ("M4 0V8",),
)
"""Paths drawn over the colour; None for profile, the device's plain work."""


def kinds_in_order(found: Iterable[str]) -> list[str]:
    """The known kinds that occur, in the order of a round, then others by name."""
    there = set(found)
    return [kind for kind in KNOWN if kind in there] + sorted(there - set(KNOWN))


def look_of(kind: str, order: list[str]) -> int:
    """Which of the looks a kind has; known kinds look the same on every page."""
    if kind in KNOWN:
        return KNOWN.index(kind)
    others = [name for name in order if name not in KNOWN]
    return len(KNOWN) + others.index(kind) % (LOOKS - len(KNOWN))


def patterns() -> Markup:
    """The definitions that every chart on the page refers to."""
    return el(
        "svg",
        el("defs", [_pattern(look, paths) for look, paths in enumerate(TEXTURES)]),
        class_="definitions",
        aria_hidden="true",
    )


def swatch(look: int) -> Markup:
    """A small sample for a legend."""
    return el(
        "svg", el("rect", width=18, height=12, rx=2, class_=f"k{look}"), width=18, height=12, class_="swatch"
    )


def _pattern(look: int, paths: tuple[str, ...]) -> Markup:
    return el(
        "pattern",
        el("rect", width=TILE, height=TILE, class_=f"s{look}"),
        [el("path", d=path, class_="texture") for path in paths],
        id=f"p{look}",
        width=TILE,
        height=TILE,
        patternUnits="userSpaceOnUse",
    )
