"""Softmax of attention without the check that PyTorch makes for masks.

PyTorch replaces rows without a finite score by zeros, which takes two further passes over all scores. Rows
of a product that nothing masks have finite scores, as long as inputs are finite and nothing overflows.
"""

from typing import Any

from tuneloom.compiler.hidden_rows import asked_about, asks_for_minus_infinity
from tuneloom.compiler.rewriting import Lookup, constant_of, name_of, number_of, rewritten

_MOVING = frozenset(("reshape", "broadcast_to", "permute_dims", "astype"))


def unmasked_scores(module: Any) -> Any:
    """The module with the check left out where scores are a product and its factors alone."""
    names = {name_of(binding.value) for block in module["main"].body.blocks for binding in block.bindings}
    return rewritten(module, _unchecked) if {"where", "nn.softmax"} <= names else module


def _unchecked(_builder: Any, call: Any, made: Lookup) -> Any | None:
    if name_of(call) != "where":
        return None
    for kept, instead in ((2, 1), (1, 2)):
        softmax = made(call.args[kept])
        is_one = name_of(softmax) == "nn.softmax" and number_of(call.args[instead], made) == 0.0
        asks = is_one and asks_for_minus_infinity(asked_about(call.args[0], made), made)
        if asks and _is_product(softmax.args[0], made):
            return call.args[kept]
    return None


def _is_product(scores: Any, made: Lookup) -> bool:
    bound = made(scores)
    while name_of(bound) in _MOVING or _is_scaled(bound):
        bound = made(bound.args[0])
    return name_of(bound) == "matmul"


def _is_scaled(bound: Any) -> bool:
    return name_of(bound) in ("multiply", "divide") and bool(constant_of(bound.args[1]))
