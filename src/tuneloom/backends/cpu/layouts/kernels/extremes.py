"""Largest and smallest numbers that begin with an infinity: TVM begins with a finite number, which is wrong
where there are nothing but infinities."""

from functools import partial
from typing import Any

from tuneloom.compiler.lazy import te, tirx, tvm

_WORST = {"max": float("-inf"), "min": float("inf")}


def fold_of(kind: str, dtype: str) -> Any:
    """What reduces values to the largest or smallest of them, or to their sum, which a mean begins with."""
    plain = {"sum": te.sum, "mean": te.sum, "max": te.max, "min": te.min}[kind]
    if kind not in _WORST or "float" not in dtype:
        return plain
    worst = _WORST[kind]
    return te.comm_reducer(lambda a, b: plain(a, b), lambda of: tirx.const(worst, of), name="extreme")


def extreme(data: Any, kind: str, axes: frozenset[int], keep: bool) -> Any:
    """The largest or smallest number along some axes, each of which disappears or keeps one place."""
    fold, rank = fold_of(kind, str(data.dtype)), len(data.shape)
    over = {axis: te.reduce_axis((0, data.shape[axis]), name=f"k{axis}") for axis in sorted(axes)}
    shape = [1 if axis in axes else data.shape[axis] for axis in range(rank) if keep or axis not in axes]

    def value(*at: Any) -> Any:
        kept = iter(at if not keep else [at[axis] for axis in range(rank) if axis not in axes])
        where = [over[axis] if axis in axes else next(kept) for axis in range(rank)]
        return fold(data[tuple(where)], axis=list(over.values()))

    return te.compute(shape, value, name="extreme")


def legalisers() -> dict[str, Any]:
    """How the passes turn the operators of these names into kernels."""
    return {f"relax.{kind}": _legaliser(kind) for kind in _WORST}


def _legaliser(kind: str) -> Any:
    usual = tvm.ir.Op.get(f"relax.{kind}").get_attr("FLegalize")

    def legalise(builder: Any, call: Any) -> Any:
        data, given = call.args[0], call.attrs.axis
        rank = len(data.ty.shape.values)
        axes = frozenset(range(rank) if given is None else (int(axis) % rank for axis in given))
        if "float" not in str(data.ty.dtype) or not axes:
            return usual(builder, call)
        make = partial(extreme, kind=kind, axes=axes, keep=bool(call.attrs.keepdims))
        return builder.call_te(make, data, primfunc_name_hint=kind)

    return legalise
