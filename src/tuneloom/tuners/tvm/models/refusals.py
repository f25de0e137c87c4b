"""Whether a model and its target can be used, asked before anything is started or kept."""

from collections.abc import Mapping

from tuneloom.errors import InputError
from tuneloom.tuners.tvm.models.stages import imported_model
from tuneloom.tuners.tvm.targets.linking import require_linker
from tuneloom.tuners.tvm.targets.target import resolve_target


def refusal(
    source: str, shapes: Mapping[str, tuple[int, ...]], target: str, only_tvm: bool = False
) -> InputError | None:
    """Why a model can't be tuned for a target; None if it can be imported.

    Runs in a worker; the imported model stays there for the job that follows.
    """
    try:
        require_linker(resolve_target(target).config)
        imported_model(source, shapes, only_tvm=only_tvm)
    except InputError as error:
        return error
    return None
