"""The order of Relax passes, in the few stages other code puts something between."""

from collections.abc import Callable
from typing import Any

from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.recurrence.on_threads import on_threads
from tuneloom.tuners.tvm.layouts.extremes import legalisers
from tuneloom.tuners.tvm.lowering.folding import fold_constants
from tuneloom.tuners.tvm.lowering.names import steady_names
from tuneloom.tuners.tvm.lowering.powers import spell_out_powers


def own_pass(name: str, change: Callable[[Any], Any]) -> Any:
    """A pass of ours among TVM's."""
    return load_tvm().transform.module_pass(lambda module, _: change(module), opt_level=0, name=name)


def folding() -> Any:
    """Operators on constants computed now."""
    return own_pass("FoldConstants", fold_constants)


def vectorising_passes() -> list[Any]:
    """Exponentials and their like as polynomials and products, since calls of the C library use one lane."""
    from tvm.relax import transform

    return [own_pass("SpellOutPowers", spell_out_powers), transform.FastMathTransform()]


def preparing_passes() -> list[Any]:
    """Inference form: batch norms folded, constants computed, aliases gone."""
    from tvm.relax import transform

    return [
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        folding(),
        transform.DeadCodeElimination(),
    ]


def batch_norm_pass() -> Any:
    """Batch norms folded into the convolutions before them; blocking does it in its own way."""
    from tvm.relax import transform

    return transform.FoldBatchnormToConv2D()


def fusing_passes(kind: str) -> list[Any]:
    """Operators to kernels for this kind of target, and elementwise tails into the kernels before them."""
    from tvm.relax import transform
    from tvm.relax.backend import DispatchSortScan

    gpu = kind != "llvm"
    own = {} if gpu else legalisers()  # threads of a GPU can only share reductions that TVM knows
    return [
        *([own_pass("RecurrencesOnThreads", on_threads)] if gpu else []),
        DispatchSortScan(),  # sorts and top-k have no loops of their own to legalise to
        transform.LegalizeOps(own),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
        transform.DeadCodeElimination(),
        own_pass("SteadyNames", steady_names),
    ]


def finishing_passes(target: Any) -> list[Any]:
    """Kernels are final; memory is planned and the program becomes calls."""
    from tvm.relax import transform

    if target.kind.name != "llvm":
        from tvm.relax.backend.cuda import pipeline  # its package forgets to export one of the two

        lowering = [*pipeline.dataflow_lower_passes(target), *pipeline.finalize_passes(target)]
        return [gpu_default_schedules(), *lowering]
    return [
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
        transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]


def gpu_default_schedules() -> Any:
    """Bind the loops of kernels that have no schedule yet to a GPU's threads."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
    return dlight.ApplyDefaultSchedule(*rules)
