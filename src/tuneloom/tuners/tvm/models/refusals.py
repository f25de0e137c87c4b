"""Whether a model and its target can be used, asked before anything is started or kept."""

from collections.abc import Sequence

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.linking import require_linker
from tuneloom.errors import InputError
from tuneloom.model import Shapes
from tuneloom.tuners.tvm.models.making.lowered import imported_model
from tuneloom.tuners.tvm.models.precision.samples import read_samples
from tuneloom.tuners.tvm.models.remembering import was_taken


def refusal(
    source: str,
    shape_sets: Sequence[Shapes],
    target: str,
    only_tvm: bool = False,
    samples: str | None = None,
    lowered_folder: str = "",
    dtype: str = "float32",
) -> InputError | None:
    """Why a model can't be tuned for a target; None if it can be imported under each of these sets of shapes.

    So are samples that don't fit it, and a target without instructions for them. Runs in a worker; the
    imported model stays there for the job that follows. One that was taken before is not imported to answer
    this, unless there are samples to look at.
    """
    try:
        spec = resolve_target(target)
        require_linker(spec.config)
        backend_of(spec).require_dtype(dtype, spec)
        if samples is None and was_taken(lowered_folder, source, shape_sets, target, only_tvm):
            return None
        for shapes in shape_sets:
            imported = imported_model(source, shapes, only_tvm=only_tvm)
            if samples is not None:
                read_samples(samples, imported.inputs)
    except InputError as error:
        return error
    return None
