"""Whether a model and its target can be used, asked before anything is started or kept."""

from collections.abc import Sequence

from tuneloom.errors import InputError
from tuneloom.model import Shapes
from tuneloom.tuners.tvm.models.remembering import was_taken
from tuneloom.tuners.tvm.models.stages import imported_model
from tuneloom.tuners.tvm.targets.linking import require_linker
from tuneloom.tuners.tvm.targets.target import resolve_target


def refusal(
    source: str, shape_sets: Sequence[Shapes], target: str, only_tvm: bool = False, looks: str = ""
) -> InputError | None:
    """Why a model can't be tuned for a target; None if it can be imported under each of these sets of shapes.

    Runs in a worker; the imported model stays there for the job that follows. One that was taken before is
    not imported to answer this.
    """
    try:
        require_linker(resolve_target(target).config)
        if was_taken(looks, source, shape_sets, target, only_tvm):
            return None
        for shapes in shape_sets:
            imported_model(source, shapes, only_tvm=only_tvm)
    except InputError as error:
        return error
    return None
