"""A hook of MkDocs: what a page says of files outside of docs/ is text on the site, which does not have them."""

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./(?!docs/)([^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links into the repository by the names of their files."""
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)
