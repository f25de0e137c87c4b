"""What the pieces of a model take in TVM is known from the kernels of the whole."""

from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import kernel_calls
from tuneloom.tuners.tvm.models.rivals.segments import shared_out


def chain(*operators: tuple[str, dict[str, int]]) -> ModelProto:
    """Operators of one input, one after the other."""
    names = [*(f"v{number}" for number in range(len(operators))), "y"]
    nodes = [
        helper.make_node(kind, [before], [after], **attributes)
        for (kind, attributes), before, after in zip(operators, names[:-1], names[1:], strict=True)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 30]) for name in (names[0], "y")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


ROWS, COLUMNS, EXP = ("Softmax", {"axis": 1}), ("Softmax", {"axis": 0}), ("Exp", dict[str, int]())


def times(whole: LoweredModel) -> dict[str, float]:
    return {name: float(3**number) for number, name in enumerate(kernel_calls(whole.module))}


def test_a_piece_takes_what_its_kernels_take_in_the_model(imported: Any, host: Any) -> None:
    whole = lower(imported(chain(ROWS, COLUMNS, ROWS)), host)
    pieces = [lower(imported(chain(*some)), host) for some in ((ROWS, COLUMNS), (ROWS,))]
    assert shared_out(times(whole), whole, pieces) == [4.0, 1.0], "a kernel counts wherever it is called"


def test_pieces_share_the_time_of_kernels_across_their_cuts(imported: Any, host: Any) -> None:
    whole = lower(imported(chain(ROWS, COLUMNS)), host)
    pieces = [lower(imported(chain(*some)), host) for some in ((ROWS,), (EXP,), (EXP,))]
    assert shared_out(times(whole), whole, pieces) == pytest.approx([1.0, 1.5, 1.5])
