"""The `main` of a model written again: with other outputs, or binding by binding."""

from collections.abc import Callable, Sequence
from typing import Any

from tuneloom.compiler.lazy import relax


def bindings_of(module: Any) -> list[Any]:
    """The bindings of a `main` that is one dataflow block; none of any other."""
    blocks = module["main"].body.blocks if isinstance(module["main"].body, relax.SeqExpr) else []
    whole = len(blocks) == 1 and isinstance(blocks[0], relax.DataflowBlock)
    return list(blocks[0].bindings) if whole else []


def with_main(module: Any, write: Callable[[Any], Any]) -> Any:
    """The module with another `main` of the same parameters: `write` emits it and returns its result."""
    builder = relax.BlockBuilder(module)
    with builder.function("renewed", params=list(module["main"].params)):
        with builder.dataflow():
            result = builder.emit_output(write(builder))
        builder.emit_func_output(result)
    made = builder.get()
    function = made["renewed"].with_attr("global_symbol", "main")
    others = {g: f for g, f in made.functions.items() if g.name_hint not in ("main", "renewed")}
    return type(module)({**others, relax.GlobalVar("main"): function}, attrs=module.attrs)


def with_outputs(module: Any, more: Callable[[Any], Sequence[Any]]) -> Any:
    """The module whose `main` gives, after its outputs, what `more` emits."""

    def write(builder: Any) -> Any:
        for binding in bindings_of(module):
            builder.emit_normalized(binding)
        return relax.Tuple([*fields_of(module["main"].body.body), *more(builder)])

    return with_main(module, write)


def function_variable(name: str, function: Any) -> Any:
    """A variable for a function: it knows the types of its parameters."""
    made = relax.GlobalVar(name)
    relax.expr._update_type(made, function.ty)
    return made


def fields_of(result: Any) -> list[Any]:
    """The single results of a function's body."""
    if isinstance(result, relax.Tuple):
        return list(result.fields)
    fields = getattr(result.ty, "fields", None)  # of a variable that holds a tuple
    return [result] if fields is None else [relax.TupleGetItem(result, n) for n in range(len(fields))]
