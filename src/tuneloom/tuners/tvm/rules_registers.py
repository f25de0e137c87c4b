"""Candidates whose accumulators do not fit into the vector registers are not built."""

from typing import Any

from tuneloom.tuners.tvm.targets import TargetSpec

_REGISTERS = {512: 32, 256: 16, 128: 16}
_SPARE = 2


def register_budget(target: TargetSpec) -> Any:
    """A postprocessor that refuses tiles larger than the register file."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.postproc import PyPostproc

    most = _REGISTERS.get(target.vector_bits, 16) - _SPARE

    @derived_object
    class RegisterBudget(PyPostproc):  # type: ignore[misc]
        """Counts the vectors of a tile."""

        def _initialize_with_tune_context(self, context: Any) -> None:
            pass

        def apply(self, sch: Any) -> bool:
            return tile_vectors(sch) <= most

        def clone(self) -> Any:
            return RegisterBudget()

    return RegisterBudget()


def tile_vectors(sch: Any) -> int:
    """How many vectors the accumulators of a schedule take; 0 when it has none."""
    root = sch.get_sblock("root")
    for block in sch.get_child_blocks(root):
        if str(sch.get(block).name_hint).endswith("_init"):
            return _unrolled(sch, block)
    return 0


def _unrolled(sch: Any, block: Any) -> int:
    from tvm.tirx import ForKind

    count = 1
    for loop in sch.get_loops(block):
        node = sch.get(loop)
        if node.kind == ForKind.UNROLLED:
            count *= int(node.extent)
    return count
