"""Places of elements: what reshaping, transposing and broadcasting leave of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneloom.backends.cuda.triton.coordinates import (
    Coordinate,
    Variable,
    masks,
    offset,
    regrouped,
    reshaped,
)


def test_a_whole_variable_stays_whole_through_a_reshape() -> None:
    row, column = Variable("m", 6), Variable("n", 8)
    place = regrouped((row.whole(), column.whole()), (1, 6, 2, 4))
    assert place is not None
    assert offset(place, (1, 6, 2, 4)) == "m * 8 + n"


def test_a_transposed_head_is_read_in_digits() -> None:
    row, column = Variable("m", 6), Variable("n", 8)
    place = regrouped((row.whole(), column.whole()), (6, 2, 4))
    assert place is not None
    turned = (place[1], place[0], place[2])
    assert offset(turned, (2, 6, 4)) == "m * 4 + (n % 4) + (n // 4) * 24"


def test_groups_that_cut_a_digit_are_refused() -> None:
    assert regrouped((Variable("m", 6).whole(), Variable("n", 4).whole()), (8, 3)) is None


def test_a_slice_shifts_and_can_not_be_reshaped() -> None:
    shifted = Coordinate(Variable("n", 4).whole().digits, scale=2, shift=3)
    assert offset((Variable("m", 2).whole(), shifted), (2, 16)) == "m * 16 + n * 2 + 3"
    assert regrouped((shifted,), (2, 2)) is None


def test_masks_come_from_the_variables_that_a_place_depends_on() -> None:
    row, column = Variable("m", 5, "m_ok"), Variable("n", 4)
    assert masks((row.whole(), column.whole())) == ("m_ok",)
    assert masks((Coordinate(), column.whole())) == ()


def test_a_single_row_with_a_mask_keeps_its_variable() -> None:
    row = Variable("m", 1, "m_ok")
    place = regrouped((row.whole(), Variable("n", 4).whole()), (1, 1, 4))
    assert place is not None
    assert offset(place, (1, 1, 4)) == "m * 4 + n"
    assert masks(place) == ("m_ok",)


@given(st.permutations(range(4)), st.lists(st.integers(1, 4), min_size=4, max_size=4), st.integers(0, 2))
def test_offsets_agree_with_numpy(axes: list[int], extents: list[int], joined: int) -> None:
    """Two variables over a tensor, reshaped into four axes, transposed, the first axes joined again."""
    rows, columns = extents[0] * extents[1], extents[2] * extents[3]
    numbers = np.arange(rows * columns).reshape(extents)
    names = {"m": np.arange(rows)[:, None], "n": np.arange(columns)[None, :]}
    place = regrouped((Variable("m", rows).whole(), Variable("n", columns).whole()), extents)
    assert place is not None
    turned = tuple(place[axis] for axis in axes)
    shape = tuple(extents[axis] for axis in axes)
    last = (int(np.prod(shape[: joined + 1])), *shape[joined + 1 :])
    final = regrouped(turned, last)
    assert final is not None
    where = np.broadcast_to(eval(offset(final, last), names), (rows, columns))
    stored = np.empty(rows * columns, int)
    stored[where.ravel()] = np.arange(rows * columns)
    assert (stored == numbers.transpose(axes).ravel()).all()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_place_of_one_element_has_no_digits(shape: tuple[int, ...]) -> None:
    place = regrouped((Coordinate(),), shape)
    assert place is not None
    assert offset(place, shape) == "0"


def test_a_slice_of_an_outer_axis_is_joined_with_the_axes_below_it() -> None:
    """One of queries, keys and values, which are axis 2 of five, in the product that made all three."""
    row, head, column = Variable("i", 7), Variable("h", 2), Variable("d", 4)
    place = (Coordinate(), row.whole(), Coordinate(shift=1), head.whole(), column.whole())
    found = reshaped(place, (1, 7, 3, 2, 4), (7, 24))
    assert found is not None
    assert offset(found, (7, 24)) == "d + h * 4 + i * 24 + 8"


def test_an_axis_that_starts_elsewhere_is_joined_too() -> None:
    """Half of each head, read for the other half."""
    place = (Variable("h", 2).whole(), Coordinate(Variable("d", 4).whole().digits, shift=-2))
    found = reshaped(place, (2, 4), (8,))
    assert found is not None
    assert offset(found, (8,)) == "d + h * 4 + -2"


def test_a_slice_of_an_inner_axis_is_not_joined() -> None:
    place = (Variable("h", 2).whole(), Coordinate(shift=1), Variable("d", 4).whole())
    assert reshaped(place, (2, 3, 4), (24,)) is None


def test_shared_heads_are_found_behind_their_repetition() -> None:
    place = (Variable("h", 6).whole(), Variable("j", 5).whole())
    found = reshaped(place, (6, 5), (2, 3, 5))
    assert found is not None
    assert offset((found[0], Coordinate(), found[2]), (2, 1, 5)) == "(h // 3) * 5 + j"


@given(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=3, max_size=3), st.integers(0, 2), st.data())
def test_offsets_of_slices_agree_with_numpy(extents: list[int], axis: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, extents[axis] - 1))
    end = data.draw(st.integers(begin + 1, extents[axis]))
    kept = [*extents[:axis], end - begin, *extents[axis + 1 :]]
    variables = [Variable(name, extent) for name, extent in zip("abc", kept, strict=True)]
    place = [variable.whole() for variable in variables]
    place[axis] = Coordinate(place[axis].digits, shift=begin)
    flat = (extents[0] * extents[1], extents[2])
    found = reshaped(tuple(place), extents, flat)
    if found is None:
        assert axis == 1
        return
    numbers = np.arange(np.prod(extents)).reshape(extents).take(range(begin, end), axis)
    grids = dict(zip("abc", np.meshgrid(*map(np.arange, kept), indexing="ij"), strict=True))
    assert (eval(offset(found, flat), {}, grids) == numbers).all()
