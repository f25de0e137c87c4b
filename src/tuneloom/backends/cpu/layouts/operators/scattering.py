"""Scattering whole rows, as graph networks add what neighbours send."""

from typing import Any

from tuneloom.backends.cpu.layouts.kernels.scattering import WAYS, scattered_rows
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.compiler.rewriting import shape_of


def _scatter_elements(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, indices, updates = call.args
    shape, given, how = shape_of(data), shape_of(updates), str(call.attrs.reduction)
    places = _places(rewriter, indices)
    if places is None or shape is None or given is None or str(data.ty.dtype) != "float32":
        return False
    whole = shape[1:] == given[1:] and shape_of(indices) == given and int(call.attrs.axis) in (0, -len(shape))
    if not whole or how not in WAYS:
        return False
    arguments = [rewriter.plain(rewriter.value(one)) for one in (data, places, updates)]
    rewriter.emit_plain(var, scattered_rows, arguments, "scatter_rows", how=how, lanes=rewriter.lanes)
    return True


def _places(rewriter: Rewriter, indices: Any) -> Any | None:
    """The places of rows before they were repeated for all numbers of a row; None if they were not."""
    call = rewriter.made_by(indices, "broadcast_to")
    if call is None:
        return None
    before, repeated = shape_of(call.args[0]), shape_of(indices)
    if before is None or repeated is None or len(before) != len(repeated) or before[0] != repeated[0]:
        return None
    return call.args[0] if len(before) > 1 and set(before[1:]) == {1} else None


RULES: dict[str, Rule] = {"relax.scatter_elements": _scatter_elements}
