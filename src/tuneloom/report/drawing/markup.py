"""HTML and SVG as values: text is escaped unless it is markup already."""

import json
from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML or SVG already. Only this module and constant files make it."""

    __slots__ = ()


EMPTY = Markup("")
VOID = frozenset({"link", "meta", "br", "hr", "img", "input"})
LINE_SEPARATORS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; `class_` becomes `class`, underscores become hyphens, None leaves one out."""
    listed = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in VOID:
        return Markup(f"<{name}{listed}>")
    return Markup(f"<{name}{listed}>{joined(children)}</{name}>")


def joined(children: object) -> Markup:
    """Children one after another: markup as it is, lists flattened, the rest escaped."""
    if children is None:
        return EMPTY
    if isinstance(children, Markup):
        return children
    if isinstance(children, Iterable) and not isinstance(children, str):
        return Markup("".join(joined(child) for child in children))
    return Markup(escape(_clean(str(children)), quote=False))


def data_script(identity: str, value: object) -> Markup:
    """Data for the page's script, as JSON that can't end its element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character, replacement in LINE_SEPARATORS.items():
        text = text.replace(character, replacement)
    return Markup(f'<script type="application/json" id="{escape(identity)}">{_clean(text)}</script>')


def _attribute(key: str, value: object) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {key.rstrip("_").replace("_", "-")}="{escape(_clean(text))}"'


def _clean(text: str) -> str:
    """Without what no HTML page may hold: broken Unicode and control characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(
        c if c in "\t\n" or (c >= " " and c != "\x7f") else "\N{REPLACEMENT CHARACTER}" for c in whole
    )
