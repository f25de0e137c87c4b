"""Weights and constants in the order vector registers want them."""

import numpy as np
import pytest

from tuneloom.backends.cpu.layouts.kernels.transposed import Transposed
from tuneloom.backends.cpu.layouts.kernels.winograd import TransformCosts, pays, winograd_weight
from tuneloom.backends.cpu.layouts.shapes import values
from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.matrices import padded_rows, panel_width
from tuneloom.backends.cpu.layouts.shapes.uneven_groups import UnevenGroups, by_channels
from tuneloom.backends.cpu.layouts.shapes.windows import Window

LANES = 16


def random(*shape: int) -> values.Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def open_conv(
    channels: tuple[int, int], size: int, kernel: int = 3, stride: int = 1, groups: int = 1
) -> values.OpenConv:
    inside, outside = channels
    data = values.Value(shape=(1, inside, size, size), plain=object())
    window = Window(kernel=(kernel, kernel), stride=(stride, stride), padding=(1, 1, 1, 1))
    weight = random(outside, inside // groups, kernel, kernel)
    shape = (1, outside, *window.output_size(size, size))
    return values.OpenConv(shape=shape, data=data, weight=weight, window=window, groups=groups)


def test_packed_weight_puts_output_channels_last() -> None:
    weight = random(32, 48, 3, 3)
    packed = values.pack_weight(weight, LANES)
    assert packed.shape == (2, 3, 3, 3, LANES, LANES)
    assert packed[1, 2, 0, 1, 5, 7] == weight[16 + 7, 32 + 5, 0, 1]


def test_missing_channels_are_zero() -> None:
    packed = values.pack_weight(random(20, 10, 1, 1), LANES)
    assert packed.shape == (2, 1, 1, 1, LANES, LANES)
    assert not packed[1, ..., 4:].any()
    assert not packed[..., 10:, :].any()


def test_first_layer_keeps_its_input_channels_plain() -> None:
    weight = random(32, 3, 7, 7)
    packed = values.pack_first_weight(weight, LANES)
    assert packed.shape == (2, 3, 7, 7, LANES)
    assert packed[1, 2, 3, 4, 5] == weight[21, 2, 3, 4]


def test_depthwise_weight_has_one_lane_per_channel() -> None:
    weight = random(24, 1, 3, 3)
    packed = values.pack_depthwise_weight(weight, LANES)
    assert packed.shape == (2, 3, 3, LANES)
    assert packed[1, 2, 0, 3] == weight[19, 0, 2, 0]


def test_matrix_is_cut_into_columns_of_one_vector() -> None:
    matrix = random(5, 40)
    packed = values.pack_matrix(matrix, LANES)
    assert packed.shape == (3, 5, LANES)
    assert packed[2, 4, 7] == matrix[4, 39]


def test_matrices_of_a_batch_are_cut_one_by_one() -> None:
    matrices = random(2, 5, 40)
    packed = values.pack_matrix(matrices, LANES)
    np.testing.assert_array_equal(packed[1], values.pack_matrix(matrices[1], LANES))


def test_channel_constants_broadcast_over_images() -> None:
    packed = values.pack_channels(np.arange(20, dtype=np.float32), LANES, fill=1.0)
    assert packed.shape == (1, 2, 1, 1, LANES)
    assert packed[0, 1, 0, 0, 3] == 19
    assert (packed[0, 1, 0, 0, 4:] == 1.0).all()


@pytest.mark.parametrize(("channels", "expected"), [(16, 1), (24, 2), (1000, 64), (1008, 63), (1024, 64)])
def test_blocks_are_rounded_only_where_channels_are_added_anyway(channels: int, expected: int) -> None:
    assert values.blocks(channels, LANES) == expected


def test_scale_and_bias_go_into_weights() -> None:
    conv = open_conv((16, 32), 8)
    before = conv.weight.copy()
    conv.shift(np.ones(32, dtype=np.float32))
    conv.scale(np.full(32, 2.0, dtype=np.float32))
    assert conv.bias is not None
    assert (conv.bias == 2.0).all()
    np.testing.assert_allclose(conv.weight, 2 * before)


@pytest.mark.parametrize(
    ("count", "outside", "inside", "span"),
    [(4, 28, 4, 1), (8, 8, 8, 1), (3, 5, 7, 2), (4, 68, 68, 9), (2, 32, 16, 1), (34, 8, 8, 1)],
)
def test_an_output_block_reads_only_the_input_blocks_of_its_groups(
    count: int, outside: int, inside: int, span: int
) -> None:
    groups = Groups(count=count, inside=inside, outside=outside, lanes=LANES)
    weight, data = random(count * outside, inside, 1, 1), random(count * inside)
    packed = groups.pack(weight)
    assert packed.shape == (groups.out_blocks, span, 1, 1, LANES, LANES)
    padded = np.zeros(groups.in_blocks * LANES, dtype=np.float32)
    padded[: data.size] = data
    blocked = padded.reshape(-1, LANES)
    first = [groups.first_block(o) for o in range(groups.out_blocks)]
    result = np.stack(
        [np.einsum("ki,kic->c", blocked[f : f + span], packed[o, :, 0, 0]) for o, f in enumerate(first)]
    )
    expected = grouped_product(weight[:, :, 0, 0], data, count)
    np.testing.assert_allclose(result.reshape(-1)[: expected.size], expected, rtol=1e-4, atol=1e-5)
    assert not result.reshape(-1)[expected.size :].any()


@pytest.mark.parametrize(
    ("count", "outside", "inside", "team", "reads"),
    [(4, 68, 68, 1, [1] * 4 + [2] + [1] * 3 + [2]), (3, 5, 7, 1, [3]), (4, 136, 136, 2, [1] * 8 + [2] * 2)],
)
def test_an_output_block_reads_its_own_groups_by_channels(
    count: int, outside: int, inside: int, team: int, reads: list[int]
) -> None:
    uneven = UnevenGroups(groups=Groups(count=count, inside=inside, outside=outside, lanes=LANES), team=team)
    assert uneven.reads[: len(reads)] == reads
    weight, data = random(count * outside, inside, 1, 1), random(count * inside)
    flat = uneven.pack(weight).reshape(len(uneven.reads), -1, inside, LANES)
    result = np.zeros((len(uneven.reads), LANES), dtype=np.float32)
    for o, groups in enumerate(uneven.reads):
        for group in range(groups):
            start = uneven.channel(o, group, 0)
            result[o] += data[start : start + inside] @ flat[o, group]
    expected = grouped_product(weight[:, :, 0, 0], data, count)
    np.testing.assert_allclose(result.reshape(-1)[: expected.size], expected, rtol=1e-4, atol=1e-5)
    assert not result.reshape(-1)[expected.size :].any()


def groups_of(count: int, width: int) -> Groups:
    return Groups(count=count, inside=width, outside=width, lanes=LANES)


def test_groups_that_end_inside_blocks_are_read_by_channels() -> None:
    uneven = by_channels(groups_of(4, 68), (14, 14))
    assert uneven is not None
    assert (uneven.channels, uneven.step) == (20 * 68, 4)


@pytest.mark.parametrize("width", [4, 8, 16, 32])
def test_groups_of_whole_blocks_and_blocks_of_whole_groups_are_read_by_blocks(width: int) -> None:
    assert by_channels(groups_of(16, width), (14, 14)) is None


def test_neighbouring_blocks_read_alike_where_images_are_too_small_to_fill_registers() -> None:
    teams = {size: by_channels(groups_of(4, 136), (size, size)) for size in (7, 14)}
    assert {size: team and team.team for size, team in teams.items()} == {7: 2, 14: 1}


def grouped_product(weight: values.Array, data: values.Array, groups: int) -> values.Array:
    rows = np.split(weight, groups)
    parts = np.split(data, groups)
    return np.concatenate([row @ part for row, part in zip(rows, parts, strict=True)])


def test_transformed_weights_have_one_matrix_per_point() -> None:
    assert winograd_weight(random(32, 16, 3, 3), LANES).shape == (36, 2, 1, LANES, LANES)


NARROW, WIDE, NEW = TransformCosts.of(4), TransformCosts.of(16), TransformCosts.of(16, has_tiles=True)


def test_wide_vectors_transform_no_more_values_than_caches_hold() -> None:
    assert pays(open_conv((32, 32), 64), WIDE)
    assert not pays(open_conv((16, 16), 128), WIDE), "few products for each value"
    assert not pays(open_conv((64, 64), 128), WIDE), "many products, but too many values"
    assert pays(open_conv((16, 16), 128), NARROW) and pays(open_conv((64, 64), 128), NARROW)


def test_transforming_pays_for_many_tiles_of_cached_weights() -> None:
    assert pays(open_conv((64, 64), 56), WIDE)
    assert not pays(open_conv((64, 64), 56, stride=2), WIDE)
    assert not pays(open_conv((64, 64), 56, kernel=5), WIDE)
    assert not pays(open_conv((64, 64), 56, groups=2), WIDE)


def test_memory_of_new_cpus_keeps_up_with_more_values_and_weights() -> None:
    assert pays(open_conv((64, 64), 128), NEW)
    assert pays(open_conv((256, 256), 14), NEW)
    assert not pays(open_conv((512, 512), 7), NEW)


def test_products_of_pairs_leave_less_to_gain() -> None:
    assert pays(open_conv((32, 32), 128), NEW, each=1)
    assert not pays(open_conv((32, 32), 128), NEW, each=2)


def test_weights_that_no_cache_holds_pay_for_narrow_vectors_alone() -> None:
    assert pays(open_conv((256, 256), 14), NARROW)
    assert pays(open_conv((512, 512), 7), NARROW)
    assert not pays(open_conv((256, 256), 14), WIDE), "products are done before the weights are there"
    assert not pays(open_conv((512, 512), 7), WIDE)


@pytest.mark.parametrize(("kernel", "stride"), [((2, 2), (2, 2)), ((3, 4), (2, 2)), ((2, 3), (3, 1))])
def test_every_tap_of_a_transposed_kernel_is_in_one_phase(
    kernel: tuple[int, int], stride: tuple[int, int]
) -> None:
    weight = random(5, 7, *kernel)
    form = Transposed(kernel=kernel, stride=stride, padding=(0, 0, 0, 0))
    packed = form.pack(weight, 4)
    assert packed.shape == (2, 2, *stride, form.taps(0), form.taps(1), 4, 4)
    for y in range(kernel[0]):
        for x in range(kernel[1]):
            taps = packed[:, :, y % stride[0], x % stride[1], y // stride[0], x // stride[1]]
            np.testing.assert_array_equal(
                taps.transpose(1, 2, 0, 3).reshape(8, 8)[:5, :7], weight[:, :, y, x]
            )
    assert np.count_nonzero(packed) == np.count_nonzero(weight)


def test_phases_of_a_transposed_kernel_are_channels_of_an_ordinary_one() -> None:
    weight = random(5, 3, 4, 2)
    form = Transposed(kernel=(4, 2), stride=(2, 2), padding=(1, 0, 1, 0))
    ordinary = form.as_ordinary(weight).reshape(3, 2, 2, 5, 2, 1)
    for y in range(4):
        for x in range(2):
            np.testing.assert_array_equal(ordinary[:, y % 2, x % 2, :, 1 - y // 2, 0], weight[:, :, y, x].T)
    assert form.window((7, 6), (14, 12)).padding == (1, 0, 1, 0), "the last row sees a tap beyond the image"


@pytest.mark.parametrize("rows", [1, 3, 4, 49, 55, 197, 1021])
def test_rows_are_padded_little_and_only_where_no_tile_divides_them(rows: int) -> None:
    padded = padded_rows(rows)
    assert rows <= padded <= rows + 4
    assert padded == rows or not any(rows % tile == 0 for tile in range(4, 9))


@pytest.mark.parametrize(("rows", "width"), [(1, 1000), (128, 256), (197, 21), (5, 3)])
def test_panels_are_whole_vectors_and_add_few_columns(rows: int, width: int) -> None:
    panel = panel_width(rows, width, 4)
    assert panel % 4 == 0
    assert -width % panel <= max(3, 0.1 * width)
