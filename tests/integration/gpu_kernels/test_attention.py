"""Attention in the forms that programs write it out in: one operator each, with the same outputs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model, operators, outputs

from tuneloom.backends.cuda.passes.attention import attention_as_one
from tuneloom.backends.cuda.passes.side_by_side import products_joined
from tuneloom.backends.cuda.passes.views import reshapes_behind, splits_as_slices
from tuneloom.backends.cuda.triton.templates.attention.finding import WIDEST
from tuneloom.compiler.passes import folding

pytestmark = pytest.mark.integration
HEADS = ((2, 3, 5, 4), "float32")
Change = Callable[[Any, Any, list[Any]], Any]
LOW = np.finfo(np.float32).min


def written_out(change: Change) -> Callable[[Any, list[Any]], Any]:
    """Attention whose scores are changed before the softmax."""

    def body(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        op = relax.op
        query, key, value, *others = values
        turned = builder.emit(op.permute_dims(key, [0, 1, 3, 2]))
        scores = builder.emit(op.matmul(query, turned))
        scaled = builder.emit(op.multiply(scores, relax.const(np.float32(0.5))))
        shares = builder.emit(op.nn.softmax(change(builder, scaled, others), axis=-1))
        return op.matmul(shares, value)

    return body


def changed_by(module: Any) -> Any:
    return reshapes_behind(attention_as_one(folding()(splits_as_slices(module))))


def the_attention(module: Any) -> Any:
    """The only call of attention; nothing else multiplies matrices."""
    assert "relax.matmul" not in operators(module)
    values = [binding.value for binding in module["main"].body.blocks[0].bindings]
    (call,) = (one for one in values if "attention" in getattr(getattr(one, "op", None), "name", ""))
    return call


def added(mask: Any) -> Change:
    def change(builder: Any, scores: Any, _others: list[Any]) -> Any:
        from tvm import relax

        return builder.emit(relax.op.add(scores, relax.const(mask)))

    return change


def test_a_bias_is_added_inside() -> None:
    from tvm import relax

    def change(builder: Any, scores: Any, others: list[Any]) -> Any:
        return builder.emit(relax.op.add(others[0], scores))

    plain = model(written_out(change), HEADS, HEADS, HEADS, ((3, 5, 5), "float32"))
    changed = changed_by(plain)
    assert [int(n) for n in the_attention(changed).args[3].ty.shape.values] == [1, 3, 5, 5]
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("width", "count"), [(WIDEST, 1), (WIDEST + 1, 0)])
def test_heads_that_are_wider_than_a_tile_stay_two_products(width: int, count: int) -> None:
    """Channels that attend to each other, as in DaViT, have whole images as heads."""
    heads = ((1, 2, 5, width), "float32")
    changed = changed_by(model(written_out(lambda _builder, scores, _others: scores), heads, heads, heads))
    assert operators(changed).count("relax.nn.attention") == count
    assert operators(changed).count("relax.matmul") == 2 - 2 * count


@pytest.mark.parametrize("keeps", [True, False])
def test_a_mask_of_truth_values_hides_keys(keeps: bool) -> None:
    from tvm import relax

    def change(builder: Any, scores: Any, others: list[Any]) -> Any:
        low = relax.const(np.float32(LOW))
        parts = (scores, low) if keeps else (low, scores)
        return builder.emit(relax.op.where(others[0], *parts))

    plain = model(written_out(change), HEADS, HEADS, HEADS, ((2, 1, 5, 5), "bool"))
    changed = changed_by(plain)
    assert the_attention(changed).op.name == "relax.nn.attention_bias"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("low", [-np.inf, LOW, -1e9])
def test_a_constant_mask_that_amounts_to_causal_is_none(low: float) -> None:
    mask = np.triu(np.full((5, 5), low, np.float32), 1)
    plain = model(written_out(added(mask)), HEADS, HEADS, HEADS)
    changed = changed_by(plain)
    call = the_attention(changed)
    assert len(call.args) == 3 and str(call.attrs.causal_mask) == "TopLeft"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_a_causal_mask_with_keys_of_a_cache_ends_with_the_last_key() -> None:
    mask = np.triu(np.full((1, 1, 5, 8), -np.inf, np.float32), 4)
    keys = ((2, 3, 8, 4), "float32")
    plain = model(written_out(added(mask)), HEADS, keys, keys)
    changed = changed_by(plain)
    assert str(the_attention(changed).attrs.causal_mask) == "BottomRight"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_a_mask_that_hides_nothing_is_gone() -> None:
    changed = changed_by(model(written_out(added(np.zeros((5, 5), np.float32))), HEADS, HEADS, HEADS))
    assert len(the_attention(changed).args) == 3


def test_windows_add_a_bias_for_each_head_and_a_mask_for_each_window() -> None:
    """As Swin does it: four windows, in two images, with scores that are regrouped for the mask."""
    from tvm import relax

    random = np.random.default_rng(1)
    bias = random.standard_normal((1, 3, 5, 5)).astype(np.float32)
    mask = np.where(random.random((1, 2, 1, 5, 5)) < 0.3, np.float32(-100), np.float32(0))

    def change(builder: Any, scores: Any, _others: list[Any]) -> Any:
        op = relax.op
        biased = builder.emit(op.add(scores, relax.const(bias)))
        grouped = builder.emit(op.reshape(biased, (2, 2, 3, 5, 5)))
        masked = builder.emit(op.add(grouped, relax.const(mask)))
        return builder.emit(op.reshape(masked, (4, 3, 5, 5)))

    plain = model(written_out(change), *[((4, 3, 5, 4), "float32")] * 3)
    changed = changed_by(plain)
    assert the_attention(changed).op.name == "relax.nn.attention_bias"
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_heads_that_share_keys_are_one_operator_too() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op = relax.op
        query, *shared = values
        wide = []
        for one in shared:
            apart = builder.emit(op.expand_dims(one, 2))
            repeated = builder.emit(op.broadcast_to(apart, (2, 2, 3, 5, 4)))
            wide.append(builder.emit(op.reshape(repeated, (2, 6, 5, 4))))
        return written_out(lambda _builder, scores, _others: scores)(builder, [query, *wide])

    shapes = ((2, 6, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4))
    plain = model(body, *((shape, "float32") for shape in shapes))
    changed = changed_by(plain)
    the_attention(changed)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_scores_that_are_changed_in_another_way_are_left_alone() -> None:
    from tvm import relax

    def change(builder: Any, scores: Any, _others: list[Any]) -> Any:
        return builder.emit(relax.op.tanh(scores))

    changed = changed_by(model(written_out(change), HEADS, HEADS, HEADS))
    assert operators(changed).count("relax.matmul") == 2


def test_parts_of_a_split_tensor_are_slices() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        parts = builder.emit(relax.op.split(values[0], [2, 5], axis=1))
        first, last = (builder.emit(parts[n]) for n in (0, 2))
        return relax.op.add(builder.emit(relax.op.sum(first)), builder.emit(relax.op.sum(last)))

    plain = model(body, ((3, 9), "float32"))
    changed = splits_as_slices(plain)
    assert "relax.split" not in operators(changed)
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)


def test_rows_without_a_key_that_become_zeros_belong_to_it_also_where_zeros_are_a_constant() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op = relax.op
        query, key, value, mask = values
        turned = builder.emit(op.permute_dims(key, [0, 1, 3, 2]))
        scores = builder.emit(op.add(builder.emit(op.matmul(query, turned)), mask))
        nothing = builder.emit(op.equal(scores, relax.const(np.float32(-np.inf))))
        shares = builder.emit(op.nn.softmax(scores, axis=-1))
        zeros = relax.const(np.zeros((2, 3, 5, 5), np.float32))
        return op.matmul(builder.emit(op.where(nothing, zeros, shares)), value)

    the_attention(changed_by(model(body, HEADS, HEADS, HEADS, ((2, 1, 1, 5), "float32"))))


def test_a_rolled_tensor_is_two_slices_joined() -> None:
    from tvm import relax

    def body(_builder: Any, values: list[Any]) -> Any:
        return relax.op.take(values[0], relax.const(np.array([3, 4, 5, 0, 1, 2])), axis=1)

    plain = model(body, ((2, 6, 3), "float32"))
    changed = reshapes_behind(plain)
    assert "relax.take" not in operators(changed) and "relax.concat" in operators(changed)
    np.testing.assert_array_equal(outputs(changed), outputs(plain))


def test_queries_keys_and_values_of_the_same_rows_are_one_product() -> None:
    from tvm import relax

    random = np.random.default_rng(3)
    weights = [relax.const(random.standard_normal((12, 12)).astype(np.float32)) for _ in range(3)]
    biases = [relax.const(random.standard_normal(12).astype(np.float32)) for _ in range(2)]

    def body(builder: Any, values: list[Any]) -> Any:
        op = relax.op
        heads = []
        for number, weight in enumerate(weights):
            rows = builder.emit(op.matmul(values[0], weight))
            if number != 1:
                rows = builder.emit(op.add(biases[number // 2], rows))
            heads.append(builder.emit(op.reshape(rows, (1, 5, 3, 4))))
        return op.nn.attention(*heads)

    plain = model(body, ((5, 12), "float32"))
    changed = products_joined(plain)
    assert operators(changed).count("relax.matmul") == 1
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-4, atol=1e-5)


def test_products_that_something_else_reads_stay_apart() -> None:
    from tvm import relax

    weights = [relax.const(np.eye(12, dtype=np.float32)) for _ in range(2)]

    def body(builder: Any, values: list[Any]) -> Any:
        one, other = (builder.emit(relax.op.matmul(values[0], weight)) for weight in weights)
        return relax.op.multiply(one, builder.emit(relax.op.sigmoid(other)))

    assert operators(products_joined(model(body, ((5, 12), "float32")))).count("relax.matmul") == 2


def test_shares_that_a_mask_hides_for_its_own_reason_are_no_plain_attention() -> None:
    from tvm import relax

    def body(builder: Any, values: list[Any]) -> Any:
        op = relax.op
        query, key, value, mask = values
        turned = builder.emit(op.permute_dims(key, [0, 1, 3, 2]))
        shares = builder.emit(op.nn.softmax(builder.emit(op.matmul(query, turned)), axis=-1))
        zero = relax.const(np.float32(0))
        return op.matmul(builder.emit(op.where(mask, zero, shares)), value)

    plain = model(body, HEADS, HEADS, HEADS, ((2, 1, 5, 1), "bool"))
    changed = changed_by(plain)
    assert operators(changed).count("relax.matmul") == 2
    np.testing.assert_allclose(outputs(changed), outputs(plain), rtol=1e-5)
