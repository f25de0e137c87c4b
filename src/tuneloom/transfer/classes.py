"""Kernel classes: the sequence of fused operators, and the operator that does the work."""

_FOLLOWERS = frozenset(
    [
        "abs",
        "add",
        "batch_norm",
        "bias_add",
        "cast",
        "ceil",
        "clip",
        "concatenate",
        "divide",
        "erf",
        "exp",
        "floor",
        "gelu",
        "hardswish",
        "leakyrelu",
        "log",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "power",
        "relu",
        "reshape",
        "round",
        "rsqrt",
        "sigmoid",
        "silu",
        "sqrt",
        "square",
        "subtract",
        "tanh",
        "transpose",
        "where",
    ]
)
"""Operators that are fused behind others and map values one by one."""


def anchor_of(kernel_class: str) -> str:
    """A class without the operators that only map the result: what remains decides the schedule."""
    words = kernel_class.split("_")
    while len(words) > 1 and words[-1] in _FOLLOWERS:
        words.pop()
    return "_".join(words)


def same_anchor(one: str, other: str) -> bool:
    """Whether two classes do the same work, whatever follows it."""
    return anchor_of(one) == anchor_of(other)
