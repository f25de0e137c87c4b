"""Values find the shapes they fit, and padding is cut off again."""

import numpy as np
import pytest

from tuneloom.errors import InputError
from tuneloom.model import CheckResult, OwnRuntime, Task, TensorInfo
from tuneloom.tuners.tvm.bundles.fitting import choose, fits_exactly, forms
from tuneloom.tuners.tvm.models.checking import added
from tuneloom.tuners.tvm.models.opening import merged


def inputs(*shapes: tuple[int, ...]) -> list[TensorInfo]:
    return [
        TensorInfo(name=name, shape=shape, dtype="float32") for name, shape in zip("xy", shapes, strict=False)
    ]


VARIANTS = [inputs((4, 6)), inputs((1, 6)), inputs((8, 6))]


def test_the_variant_with_these_very_shapes_is_chosen() -> None:
    assert [choose([np.zeros((n, 6))], VARIANTS, False).variant for n in (1, 4, 8)] == [1, 0, 2]


def test_values_fit_exactly_if_count_shapes_and_types_are_those_of_the_inputs() -> None:
    right = np.zeros((4, 6), np.float32)
    wanted = forms(VARIANTS[0])
    assert fits_exactly([right], wanted)
    others = ([right.astype(np.float64)], [right[:3]], [right, right], [])
    assert not any(fits_exactly(values, wanted) for values in others)
    odd = forms([TensorInfo(name="x", shape=(4, 6), dtype="a type that NumPy lacks")])
    assert not fits_exactly([right], odd)


def test_smaller_values_go_to_the_smallest_variant_that_holds_them() -> None:
    chosen = choose([np.ones((3, 5))], VARIANTS, True)
    assert chosen.variant == 0
    (value,) = chosen.values
    assert value.shape == (4, 6) and value.sum() == 15 and value[:3, :5].all()


def test_outputs_lose_the_rows_that_padding_added_and_nothing_else() -> None:
    chosen = choose([np.ones((3, 6))], VARIANTS, True)
    (by_row, other) = chosen.cut([np.zeros((4, 9)), np.zeros((2, 9))])
    assert by_row.shape == (3, 9) and other.shape == (2, 9)


@pytest.mark.parametrize(
    ("shape", "pad", "words"),
    [
        ((5, 6), False, r"'x' must have one of the shapes \(4, 6\), \(1, 6\), \(8, 6\), got \(5, 6\)"),
        ((9, 6), True, r"'x' must fit into one of the shapes .*, got \(9, 6\)"),
        ((4, 6, 1), True, r"got \(4, 6, 1\)"),
    ],
)
def test_what_fits_nowhere_is_refused_by_name(shape: tuple[int, ...], pad: bool, words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose([np.zeros(shape)], VARIANTS, pad)


def test_a_bundle_with_one_set_of_shapes_says_which() -> None:
    with pytest.raises(InputError, match=r"input 'x' must have the shape \(4, 6\), got \(1, 6\)"):
        choose([np.zeros((1, 6))], VARIANTS[:1], False)


def test_shapes_of_different_variants_are_not_mixed() -> None:
    variants = [inputs((1, 2), (1, 3)), inputs((4, 2), (4, 3))]
    with pytest.raises(InputError, match=r"different variants; .*x \(1, 2\), y \(1, 3\); x \(4, 2\)"):
        choose([np.zeros((1, 2)), np.zeros((4, 3))], variants, False)


def test_tasks_of_all_variants_are_there_once_with_the_sum_of_their_weights() -> None:
    def task(key: str, weight: int) -> Task:
        return Task(key=key, name=key, weight=weight, gflop=1.0, payload=b"")

    found = merged([[task("a", 2), task("b", 1)], [task("a", 3), task("c", 1)]])
    assert [(one.key, one.weight) for one in found] == [("a", 5), ("b", 1), ("c", 1)]


def test_checks_under_several_shapes_add_up_to_one_run_of_all() -> None:
    own = OwnRuntime(name="onnxruntime", difference=0.0, seconds=(4.0,), tuned_s=(1.0,))
    one = CheckResult(difference=1e-6, tuned_s=(1.0, 1.0), untuned_s=(2.0, 2.0), own_runtime=own)
    other = CheckResult(difference=1e-4, tuned_s=(3.0,), untuned_s=(5.0, 5.0), own_runtime=own)
    both = added([one, other])
    assert (both.difference, both.tuned_s, both.untuned_s) == (1e-4, (4.0,), (7.0, 7.0))
    assert both.by_shape == ((2.0, 1.0), (5.0, 3.0))
    assert both.own_runtime is not None and both.own_runtime.seconds == (8.0,)
    assert added([one]) is one
