"""Rewrite a network so that channels fill vector registers from end to end.

Convolutions, poolings and what lies between them work on blocked tensors; weights
are packed once, at compile time; batch norms disappear into the weights before them.
Whatever has no blocked form gets its plain tensors back.
"""

from typing import Any

from tuneloom.tuners.tvm.layouts.rewriter import Rewriter
from tuneloom.tuners.tvm.layouts.rules import RULES

_OPAQUE = 8
"""TVM's number for operators that nothing is fused with."""


def block_layouts(module: Any, lanes: int) -> Any:
    """The module with `main` rewritten for vectors of `lanes` floats.

    Only a `main` that is one dataflow block is rewritten; others come back unchanged.
    """
    from tvm import relax

    main = module["main"]
    blocks = main.body.blocks if isinstance(main.body, relax.SeqExpr) else []
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        return module
    others = {gvar: one for gvar, one in module.functions.items() if gvar.name_hint != "main"}
    builder = relax.BlockBuilder(type(module)(others))
    rewriter = Rewriter(builder, lanes, uses(main))
    with builder.function("main", params=list(main.params)):
        with builder.dataflow():
            for binding in blocks[0].bindings:
                _rewrite(rewriter, binding)
            result = builder.emit_output(rewriter.plain_tree(main.body.body))
        builder.emit_func_output(result)
    done = builder.get()
    done["main"] = done["main"].with_attrs(dict(main.attrs or {}))
    return _keep_apart(done)


def uses(function: Any) -> dict[Any, int]:
    """How often each variable is read."""
    from tvm import relax

    counts: dict[Any, int] = {}

    def visit(node: Any) -> None:
        if isinstance(node, relax.Var):
            counts[node] = counts.get(node, 0) + 1

    for block in function.body.blocks:
        for binding in block.bindings:
            relax.analysis.post_order_visit(binding.value, visit)
    relax.analysis.post_order_visit(function.body.body, visit)
    return counts


def _keep_apart(module: Any) -> Any:
    """Transforms into tiles read every value several times: never fuse what makes the values."""
    for gvar in module.get_global_vars():
        if gvar.name_hint.startswith("winograd_input"):
            module[gvar] = module[gvar].with_attr("op_pattern", _OPAQUE)
    return module


def _rewrite(rewriter: Rewriter, binding: Any) -> None:
    from tvm import relax

    value = binding.value
    name = getattr(value.op, "name", "") if isinstance(value, relax.Call) else type(value).__name__
    rule = RULES.get(name)
    if rule is None or not rule(rewriter, binding.var, value):
        rewriter.keep(binding.var, value)
