"""Rewrite a network so that channels fill vector registers from end to end.

Convolutions, poolings and what lies between them work on blocked tensors; weights
are packed once, at compile time; batch norms disappear into the weights before them.
Whatever has no blocked form gets its plain tensors back.
"""

from typing import Any

from tuneloom.backends.cpu.layouts.convolutions import IN_GROUPS
from tuneloom.backends.cpu.layouts.rewriter import Rewriter
from tuneloom.backends.cpu.layouts.rules import RULES
from tuneloom.backends.cpu.layouts.shapes.block_sizes import block_size
from tuneloom.backends.cpu.layouts.shapes.skipping import skip_zeros
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.passes import folding, own_pass

_TAIL, _OPAQUE = 4, 8
_PATTERNS = {
    "winograd_input": _OPAQUE,
    "product": _TAIL,
    "attention": _OPAQUE,
    "line_": _TAIL,
    "conv2d": _TAIL,
    "resize": _TAIL,
}
"""TVM's numbers for what may be fused with a kernel: elementwise operators after it, or nothing.

Transforms into tiles, products and resizes read every value several times, lines go through
memory more than once: what makes their values must not be computed again each time.
"""


def blocking_passes(target: CpuTarget, dtype: str, make: type[Rewriter] = Rewriter) -> list[Any]:
    """The passes that lay a model out for a CPU, with products in this type.

    `make` is a rewriter of somebody's own, who computes some products elsewhere.
    """
    whole = target.dots.data if target.dots is not None else ""
    dots = whole if dtype == "int8" else ""

    def block(module: Any) -> Any:
        pairs = dtype == "bfloat16"
        block = block_size(module, target.lanes) if dtype == "float32" else target.lanes
        return block_layouts(
            module, target.lanes, dots, whole, pairs=pairs, tiles=target.tiles, make=make, block=block
        )

    return [
        folding(),
        own_pass("BlockLayouts", block),
        relax.transform.FastMathTransform(),
    ]


def block_layouts(
    module: Any,
    lanes: int,
    dots: str = "",
    whole: str = "",
    *,
    pairs: bool = False,
    tiles: frozenset[str] = frozenset(),
    make: type[Rewriter] = Rewriter,
    block: int = 0,
) -> Any:
    """The module with `main` rewritten for vectors of `lanes` floats, so many channels in a `block`.

    A block is one vector unless something else is given.

    Products of data that are rounded to the type `dots` work on whole numbers, if there is such a type.
    Products that the model itself has in whole numbers take data of the type `whole`, if there is an
    instruction for it. With `pairs`, products with constant weights work on bfloat16 numbers.
    `tiles` are the kinds of numbers that are multiplied in tile registers.
    Only a `main` that is one dataflow block is rewritten; others come back unchanged.
    """
    main = module["main"]
    blocks = main.body.blocks if isinstance(main.body, relax.SeqExpr) else []
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        return module
    others = {gvar: one for gvar, one in module.functions.items() if gvar.name_hint != "main"}
    builder = relax.BlockBuilder(type(module)(others))
    made = {binding.var: binding.value for binding in blocks[0].bindings}
    rewriter = make(builder, lanes, uses(main), made, dots, whole, pairs=pairs, tiles=tiles, block=block)
    with builder.function("main", params=list(main.params)):
        with builder.dataflow():
            for binding in blocks[0].bindings:
                _rewrite(rewriter, binding)
            result = builder.emit_output(rewriter.plain_tree(main.body.body))
        builder.emit_func_output(result)
    done = builder.get()
    done["main"] = done["main"].with_attrs(dict(main.attrs or {}))
    return _finished(done)


def uses(function: Any) -> dict[Any, int]:
    """How often each variable is read."""
    counts: dict[Any, int] = {}

    def visit(node: Any) -> None:
        if isinstance(node, relax.Var):
            counts[node] = counts.get(node, 0) + 1

    for block in function.body.blocks:
        for binding in block.bindings:
            relax.analysis.post_order_visit(binding.value, visit)
    relax.analysis.post_order_visit(function.body.body, visit)
    return counts


def _finished(module: Any) -> Any:
    """Say what may be fused with our kernels, where TVM would guess wrong by their loops; skip zeros."""
    for gvar in module.get_global_vars():
        for prefix, pattern in _PATTERNS.items():
            if gvar.name_hint.startswith(prefix):
                module[gvar] = module[gvar].with_attr("op_pattern", pattern)
        if gvar.name_hint.startswith(IN_GROUPS):
            module[gvar] = skip_zeros(module[gvar])
    return module


def _rewrite(rewriter: Rewriter, binding: Any) -> None:
    value = binding.value
    name = getattr(value.op, "name", "") if isinstance(value, relax.Call) else type(value).__name__
    rules = RULES.get(name, ())
    if not any(rule(rewriter, binding.var, value) for rule in rules):
        rewriter.keep(binding.var, value)
