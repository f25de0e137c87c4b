"""Where a search gets its sketches from, whatever the compiler says to its kernel."""

from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.compiler.fast_import import load_intrinsics
from tuneloom.compiler.lazy import ms

_SEED = 1  # replaying traces involves no chance, but TVM wants to know


def opened(kernel: ModelKernel) -> tuple[Any, list[Any]]:
    """A context for a kernel and the schedules its space begins with.

    The general space refuses some kernels (a block that can't be moved under another one's
    loops, say). Those are left with a space of one plain schedule: a worse kernel, but no failure.
    """
    backend = backend_of(kernel.target)
    try:
        return _generated(kernel, backend.space(kernel.module, kernel.target))
    except Exception:  # TVM's rules raise errors of many kinds
        return _generated(kernel, backend.last_resort(kernel.module, kernel.target))


def is_template(generator: Any) -> bool:
    """Whether a space was made from templates, whose own decisions are good guesses."""
    return isinstance(generator, ms.space_generator.ScheduleFn)


def _generated(kernel: ModelKernel, generator: Any) -> tuple[Any, list[Any]]:
    if isinstance(generator, str):  # a space of TVM's, whose rules look up instructions by their names
        load_intrinsics(kernel.target.kind)
    context = ms.TuneContext(
        mod=kernel.module,
        target=kernel.target.to_tvm(),
        space_generator=generator,
        search_strategy="replay-trace",
        num_threads=1,
        rand_state=_SEED,
    )
    schedules = list(context.generate_design_space())
    if not schedules:
        raise ValueError("an empty space")
    return context, schedules
