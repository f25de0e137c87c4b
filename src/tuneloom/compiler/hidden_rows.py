"""PyTorch's question whether masks hide all scores of a row, as programs write it out."""

from typing import Any

from tuneloom.compiler.rewriting import Lookup, name_of, number_of

_ASKING = frozenset(("logical_not", "max", "min", "any", "all", "astype", "reshape", "broadcast_to"))


def asked_about(mask: Any, made: Lookup) -> Any:
    """What a mask asks about, whether of all or of any, and however it is negated or spread."""
    bound = made(mask)
    while name_of(bound) in _ASKING:
        bound = made(bound.args[0])
    return bound


def asks_for_minus_infinity(bound: Any, made: Lookup) -> bool:
    """Whether scores are compared with minus infinity."""
    compared = name_of(bound) in ("equal", "not_equal")
    return compared and any(number_of(one, made) == float("-inf") for one in bound.args)
