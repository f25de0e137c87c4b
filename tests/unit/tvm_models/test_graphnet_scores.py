"""ES(t) as GraphNet defines it: errors count as a slow-down, less so as tolerance grows."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from graphnet.scores import allowed, score

ROWS: list[dict[str, Any]] = [
    {"eager": {"seconds": 4.0}, "ours": {"seconds": 1.0, "tolerance": -5}},
    {"eager": {"seconds": 4.0}, "ours": {"seconds": 1.0, "tolerance": None}},
    {"eager": {"seconds": 4.0}, "ours": {"error": "it crashed"}},
]


@pytest.mark.parametrize(
    ("row", "t", "expected"),
    [(0, -6, 0.1), (0, -5, 4.0), (0, 3, 4.0), (1, 0, 0.1), (1, 1, 1.0), (2, 2, 0.1), (2, 3, 1.0)],
)
def test_a_graph_counts_by_its_speed_if_it_is_right_at_a_tolerance(row: int, t: int, expected: float) -> None:
    assert score([ROWS[row]], "ours", t) == pytest.approx(expected)


def test_graphs_count_by_their_geometric_mean() -> None:
    assert score(ROWS, "ours", 0) == pytest.approx((4.0 * 0.1 * 0.1) ** (1 / 3))


def test_whole_numbers_have_to_be_equal() -> None:
    assert allowed(0, "int64") == (0.0, 0.0)
    assert allowed(-5, "float32") == pytest.approx((10**-5.886, 1e-5))


def test_recorded_weights_are_tensors_and_other_recorded_scalars_numbers() -> None:
    torch = pytest.importorskip("torch")
    from graphnet.samples import _value

    def drawn(name: str) -> Any:
        meta = type(name, (), {"name": name, "shape": [], "dtype": "torch.float32", "data": [2.5]})
        return _value(meta, torch.Generator())

    assert torch.equal(drawn("L_self_parameters_logit_scale_"), torch.tensor(2.5))
    assert drawn("s0") == 2.5 and not isinstance(drawn("s0"), torch.Tensor)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("l_rate = L_Rate.item()", True),
        ("l_rate = L_Rate\nnumber = l_rate.item()", True),
        ("l_drop_rate = L_Rate\nnumber = (\n    l_drop_rate.item()\n)", True),
        ("l_rate = L_Rate\nnumber = l_other.item()", False),
    ],
)
def test_a_graph_may_ask_for_a_number_by_the_name_of_a_variable(text: str, asked: bool) -> None:
    pytest.importorskip("torch")
    from graphnet.samples import _is_asked_for

    assert _is_asked_for("L_Rate", text) is asked
