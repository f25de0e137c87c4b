"""Open dimensions are bound by the user, by each other, or to a batch of one."""

import re

import pytest

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.binding import Dims, bind


def test_an_open_batch_is_one_and_said() -> None:
    bound = bind({"x": ("N", 3, 8, 8)}, {}, "net")
    assert bound.shapes == {"x": (1, 3, 8, 8)}
    assert "--shape x=1,3,8,8" in bound.notes[0]


def test_a_batch_named_elsewhere_is_one_there_too() -> None:
    bound = bind({"x": ("batch", 16), "state": (2, "batch", 128)}, {}, "net")
    assert bound.shapes["state"] == (2, 1, 128)


def test_a_given_shape_names_dimensions_of_other_inputs() -> None:
    bound = bind({"ids": ("batch", "length"), "mask": ("batch", "length")}, {"ids": (4, 32)}, "net")
    assert bound.shapes["mask"] == (4, 32)
    assert not bound.notes


@pytest.mark.parametrize(
    "declared",
    [
        {"x": ("?", 3, "?", "?")},
        {"images": ("batch", 3, "height", "width")},
        {"ids": ("batch", "sequence"), "mask": ("batch", "sequence")},
        {"audio": ("?", "?"), "state": (2, "?", 128), "rate": ()},
        {"anything": None},
    ],
)
def test_the_proposed_command_binds_everything(declared: dict[str, Dims | None]) -> None:
    with pytest.raises(ModelError, match="unbound shape") as refused:
        bind(declared, {}, "net")
    proposed = dict(re.findall(r"--shape (\w+)=([\d,]+)", str(refused.value)))
    given = {name: tuple(map(int, shape.split(","))) for name, shape in proposed.items()}
    assert set(bind(declared, given, "net").shapes) == set(declared)


def test_one_dimension_can_not_have_two_sizes() -> None:
    with pytest.raises(ModelError, match="length can't be 8 and 9"):
        bind({"a": (1, "length"), "b": (1, "length")}, {"a": (1, 8), "b": (1, 9)}, "net")
