"""Small models written in Relax, and what tests ask of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tuneloom.backends.cuda.passes.spelled_out import attention_loops
from tuneloom.compiler.fast_import import load_tvm

Body = Callable[[Any, list[Any]], Any]


def model(body: Body, *inputs: tuple[tuple[int, ...], str]) -> Any:
    """A module whose `main` emits the body."""
    load_tvm()
    from tvm import relax

    builder = relax.BlockBuilder()
    values = [relax.Var(f"x{n}", relax.TensorType(shape, dtype)) for n, (shape, dtype) in enumerate(inputs)]
    with builder.function("main", values):
        with builder.dataflow():
            result = builder.emit_output(body(builder, values))
        builder.emit_func_output(result)
    return builder.get()


def operators(module: Any) -> list[str]:
    """The operators that `main` calls, in order."""
    bindings = module["main"].body.blocks[0].bindings
    return [binding.value.op.name for binding in bindings if hasattr(binding.value, "op")]


def outputs(module: Any) -> Any:
    """What a model computes from seeded values, on the CPU."""
    tvm = load_tvm()
    from tvm import relax

    random = np.random.default_rng(0)
    values = []
    for one in module["main"].params:
        shape = [int(extent) for extent in one.ty.shape.values]
        drawn, dtype = random.standard_normal(shape), str(one.ty.dtype)
        values.append(tvm.runtime.tensor(drawn > -0.5 if dtype == "bool" else drawn.astype(dtype)))
    own = dict.fromkeys(("relax.nn.attention", "relax.nn.attention_bias"), attention_loops)
    module = relax.transform.LegalizeOps(own)(module)
    machine = relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())
    return machine["main"](*values).numpy()
