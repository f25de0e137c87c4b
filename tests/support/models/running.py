"""Runs modules of Relax as they are."""

from typing import Any

from tuneloom.compiler.fast_import import load_tvm


def run_main(module: Any, data: Any) -> Any:
    """What `main` of a module computes on this machine."""
    tvm = load_tvm()
    from tvm import relax

    executable = relax.build(relax.transform.DeadCodeElimination()(module), "llvm")
    return relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(data)).numpy()
