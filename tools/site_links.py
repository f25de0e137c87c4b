"""A hook of MkDocs: where a page speaks of files outside of docs/, the site, which lacks them, has text."""

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./(?!docs/)([^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links into the repository by the names of their files."""
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)
