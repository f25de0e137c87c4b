"""A model with its products with constant weights in bfloat16, and what that does to its outputs."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.errors import InputError, TargetError
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.differences import relative_difference
from tuneloom.tuners.tvm.models.final import Array, build_model
from tuneloom.tuners.tvm.targets.target import TargetSpec


def require_pairs(target: TargetSpec) -> None:
    """Raise TargetError if a CPU has no instruction for products in bfloat16."""
    if target.pairs is None:
        name = target.mcpu or target.kind
        raise TargetError(
            f"bfloat16 needs AVX512-BF16 or ARM's BF16 instructions, and {name} has neither; omit --dtype"
        )


def halve(
    imported: ImportedModel, target: TargetSpec, values: Sequence[Array], tolerance: float
) -> ImportedModel:
    """The model in bfloat16, with a note that tells how far its outputs are from those in float32.

    Raises InputError where the CPU has no instructions for it, and for outputs beyond the tolerance.
    """
    require_pairs(target)
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
