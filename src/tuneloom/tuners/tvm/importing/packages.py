"""Packages that only some formats need: asked for when a file of theirs comes in."""

import importlib
from typing import Any

from tuneloom.errors import ModelError


def needed(package: str, what: str) -> Any:
    """The imported package; raises ModelError that names the extra it comes with."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ModelError(f"{what} needs {package}; install it: pip install 'tuneloom[{package}]'") from error
