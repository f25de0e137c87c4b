"""A model with its products with constant weights in bfloat16, and what that does to its outputs."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array


def halve(
    imported: ImportedModel, target: TargetSpec, values: Sequence[Array], tolerance: float
) -> ImportedModel:
    """The model in bfloat16, with a note that tells how far its outputs are from those in float32.

    Raises InputError where the CPU has no instructions for it, and for outputs beyond the tolerance.
    """
    backend_of(target).require_dtype("bfloat16", target)
    made = replace(imported, digest=f"{imported.digest}-bfloat16", dtype="bfloat16")
    got, expected = (
        build_model(lower(one, target), {}, guess=True).open_here().run(values) for one in (made, imported)
    )
    difference = max(map(relative_difference, got, expected))
    if not difference <= tolerance:
        raise InputError(
            f"bfloat16 changes the outputs of {imported.name} by {difference:.1%}, more than the tolerance "
            f"of {tolerance:.1%}; raise --tolerance, or omit --dtype"
        )
    note = f"bfloat16: outputs differ by {difference:.1%} from those in float32"
    return replace(made, notes=(*imported.notes, note))
