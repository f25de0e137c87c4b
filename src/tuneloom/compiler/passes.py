"""Passes of ours among TVM's."""

from collections.abc import Callable
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.folding import fold_constants


def own_pass(name: str, change: Callable[[Any], Any]) -> Any:
    """A pass of ours among TVM's."""
    return load_tvm().transform.module_pass(lambda module, _: change(module), opt_level=0, name=name)


def folding() -> Any:
    """Operators on constants computed now."""
    return own_pass("FoldConstants", fold_constants)
