"""Pieces of a graph get the time of the kernels that come in their order."""

import pytest

from tuneloom.tuners.tvm.models.rivals.ordering import shared_out_in_order

CALLS = ("fused_conv2d_add_relu", "max_pool2d", "winograd_input1", "winograd_product1", "fused_product_add")
SECONDS = dict(zip(CALLS, (1.0, 2.0, 4.0, 8.0, 16.0), strict=True))


@pytest.mark.parametrize(
    ("pieces", "times"),
    [
        ((["Conv", "Relu", "MaxPool"], ["Conv", "Gemm"]), [3.0, 28.0]),
        ((["Conv"], ["Relu", "MaxPool", "Conv"], ["Gemm"]), [3.0, 12.0, 16.0]),
        ((["Conv", "Conv", "Gemm"], ["Relu"]), [31.0, 0.0]),
    ],
)
def test_each_product_takes_its_neighbours_along(pieces: list[list[str]], times: list[float]) -> None:
    assert shared_out_in_order(SECONDS, CALLS, pieces) == times


@pytest.mark.parametrize("pieces", [(["Conv"], ["Gemm"]), (["Relu"], ["Exp"])])
def test_kernels_that_are_not_as_many_as_the_graphs_products_tell_nothing(pieces: list[list[str]]) -> None:
    assert shared_out_in_order(SECONDS, CALLS, pieces) is None


def test_a_kernel_that_is_called_again_counts_wherever_it_is_called() -> None:
    assert shared_out_in_order({"conv2d": 2.0}, ["conv2d", "conv2d"], [["Conv"], ["Conv"]]) == [2.0, 2.0]
