"""Both directions of a recurrent layer in one kernel: on a GPU they run side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of, with_main
from tuneloom.tuners.tvm.importing.recurrence.cells import Cell, cells_in
from tuneloom.tuners.tvm.importing.recurrence.kernels import kernel_of


def directions_at_once(module: Any) -> Any:
    """The module with every two recurrent kernels that differ in nothing but their direction as one."""
    bindings = bindings_of(module)
    for (first, one), (second, other) in pairwise(_kernels(module, bindings)):
        later = _later(bindings, first, second)
        if replace(one, backwards=other.backwards) == other and one != other and second not in later:
            return directions_at_once(_joined(module, bindings, (first, second), later, (one, other)))
    return module


def _kernels(module: Any, bindings: Sequence[Any]) -> Iterator[tuple[int, Cell]]:
    """Calls of kernels with a single cell, by the numbers of their bindings."""
    for number, binding in enumerate(bindings):
        call = binding.value
        if str(getattr(getattr(call, "op", None), "name", "")) == "relax.call_tir":
            cells = cells_in(module[call.args[0]])
            if len(cells) == 1:
                yield number, cells[0]


def _later(bindings: Sequence[Any], first: int, last: int) -> set[int]:
    """The bindings up to the last that need the first, itself among them."""
    found, made = {first}, {bindings[first].var}
    for number in range(first + 1, last + 1):
        if made & set(relax.analysis.free_vars(bindings[number].value)):
            found.add(number)
            made.add(bindings[number].var)
    return found


def _joined(
    module: Any,
    bindings: Sequence[Any],
    pair: tuple[int, int],
    later: set[int],
    cells: tuple[Cell, Cell],
) -> Any:
    """The module with one kernel in the place of the second; what needs the first comes behind it."""
    first, second = (bindings[number] for number in pair)
    before = [number for number in range(pair[1]) if number not in later]
    behind = [*sorted(later - {pair[0]}), *range(pair[1] + 1, len(bindings))]

    def write(builder: Any) -> Any:
        for number in before:
            builder.emit_normalized(bindings[number])
        kernel = builder.add_func(kernel_of(*cells), cells[0].kind.lower())
        arguments = [*first.value.args[1], *second.value.args[1]]
        kinds = [*first.var.ty.fields, *second.var.ty.fields]
        both = builder.emit(relax.call_tir(kernel, relax.Tuple(arguments), kinds))
        made = [builder.emit(relax.TupleGetItem(both, number)) for number in range(len(kinds))]
        half = len(made) // 2
        for binding, fields in ((first, made[:half]), (second, made[half:])):
            builder.emit_normalized(relax.VarBinding(binding.var, relax.Tuple(fields)))
        for number in behind:
            builder.emit_normalized(bindings[number])
        return module["main"].body.body

    return relax.transform.DeadCodeElimination()(
        relax.transform.CanonicalizeBindings()(with_main(module, write))
    )
