"""The order of Relax passes from an imported model to kernels, whatever they are for."""

from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.passes import folding, own_pass
from tuneloom.compiler.summing import summing_loops
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.importing.recurrence.directions import directions_at_once
from tuneloom.tuners.tvm.importing.recurrence.on_threads import on_threads
from tuneloom.tuners.tvm.lowering.finite_scores import unmasked_scores
from tuneloom.tuners.tvm.lowering.in_place import reading_in_place
from tuneloom.tuners.tvm.lowering.meanings import Meanings
from tuneloom.tuners.tvm.lowering.names import steady_names
from tuneloom.tuners.tvm.lowering.powers import powers_as_products
from tuneloom.tuners.tvm.lowering.regrouping import parts_regrouped
from tuneloom.tuners.tvm.lowering.trimming import ends_trimmed


def simplifying_passes() -> list[Any]:
    """What makes a model smaller while its operators are still as they were imported."""
    return [own_pass("TrimEnds", ends_trimmed), own_pass("UnmaskedScores", unmasked_scores)]


def preparing_passes() -> list[Any]:
    """Inference form: batch norms folded, parts of tensors regrouped, constants computed, aliases gone."""
    return [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        own_pass("RegroupParts", parts_regrouped),
        folding(),
        relax.transform.DeadCodeElimination(),
    ]


def fusing_passes(target: TargetSpec, meanings: Meanings | None = None) -> list[Any]:
    """Operators to kernels for a target, and elementwise tails into the kernels before them.

    `meanings` gets to know what the kernels compute.
    """
    backend = backend_of(target)
    own = {**powers_as_products(), **summing_loops(), **backend.legalisers()}
    return [
        *(_recurrences() if backend.binds_threads else []),
        relax.backend.DispatchSortScan(),  # sorts and top-k have no loops of their own to legalise to
        relax.transform.LegalizeOps(own if meanings is None else meanings.watching(own)),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        *([] if meanings is None else _grouping(meanings, target)),
        relax.transform.FuseOps(),
        *([] if meanings is None else [meanings.reading()]),
        relax.transform.FuseTIR(),
        relax.transform.DeadCodeElimination(),
        own_pass("SteadyNames", steady_names),
    ]


def _recurrences() -> list[Any]:
    """Recurrent layers for a device that runs many threads: both directions at once."""
    return [own_pass("DirectionsAtOnce", directions_at_once), own_pass("RecurrencesOnThreads", on_threads)]


def _grouping(meanings: Meanings, target: TargetSpec) -> list[Any]:
    """Views into the kernels that read them in place; what nobody else reads is gone."""
    grouping = own_pass("ReadingInPlace", lambda module: reading_in_place(module, meanings, target))
    return [grouping, relax.transform.DeadCodeElimination()]
