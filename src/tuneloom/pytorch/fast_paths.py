"""The fast path of encoder layers, which dynamo captures as one operator, in ones that can be compiled."""

from typing import Any

import torch
from torch.nn import functional


def without_fast_paths(module: Any) -> None:
    """Replace the operator of an encoder layer's fast path in a graph module, in place."""
    for node in module.graph.nodes:
        if node.target is torch._transformer_encoder_layer_fwd:
            node.target = encoder_layer
    module.recompile()


def encoder_layer(
    x: Any,
    width: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    out_weight: Any,
    out_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *rest: Any,
) -> Any:
    """A layer of `nn.TransformerEncoder`, with its arguments in the order of PyTorch's operator."""
    norms, wide, narrow = (rest[:2], rest[2:4]), rest[4:6], rest[6:8]
    mask, mask_type = rest[8:10] or (None, None)

    def attended(value: Any) -> Any:
        mixed = _mixed(functional.linear(value, qkv_weight, qkv_bias), heads, mask, mask_type)
        return functional.linear(mixed, out_weight, out_bias)

    def fed(value: Any) -> Any:
        hidden = functional.linear(value, *wide)
        return functional.linear(functional.gelu(hidden) if use_gelu else functional.relu(hidden), *narrow)

    def normed(value: Any, number: int) -> Any:
        scale, shift = norms[number]
        return functional.layer_norm(value, (width,), scale, shift, eps)

    if norm_first:
        x = x + attended(normed(x, 0))
        return x + fed(normed(x, 1))
    x = normed(x + attended(x), 0)
    return normed(x + fed(x), 1)


def _mixed(qkv: Any, heads: int, mask: Any, mask_type: int | None) -> Any:
    """Values mixed by attention; a mask is true where nothing is seen, and of type 1 if it is one of rows."""
    batch, length, three = qkv.shape
    parts = qkv.reshape(batch, length, 3, heads, three // 3 // heads)
    queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
    seen = None if mask is None else ~mask.to(torch.bool)
    if seen is not None and mask_type == 1:
        seen = seen.reshape(batch, 1, 1, length)
    mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
    return mixed.transpose(1, 2).reshape(batch, length, three // 3)
