"""What templates that multiply on tensor cores have in common: tiles of variables, products, precision."""

from tuneloom.backends.cuda.triton.coordinates import Variable
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import MeaningStep

PRECISIONS = ("ieee", "tf32x3", "tf32")
"""How float32 numbers are multiplied, as the knob `precision` counts."""
_IMPRECISE = 128
"""How many 8-bit products tensor cores may add by themselves, with some 14 bits, before float32 adds them."""


def precisions_of(step: MeaningStep, dtype: str) -> tuple[int, ...]:
    """Values of the knob `precision`: exact or three products for float32, unless TF32 is asked for."""
    if dtype != "float32":
        return (0,)
    return (2,) if step.attributes.get("precision") == "tf32" else (1, 0)


def dot(first: str, second: str, sums: str, dtype: str, precision: int, depth: int = 32) -> str:
    """A product of tiles that are `depth` deep, added to its sums.

    In TF32 the first is rounded, where tensor cores would cut bits off; NaN has to stay what it is.
    """
    if dtype == "int8":
        return f"tl.dot({first}, {second}, {sums}, out_dtype=tl.int32)"
    if dtype.startswith("float8"):
        return f"tl.dot({first}, {second}, {sums}, max_num_imprecise_acc={min(_IMPRECISE, depth)})"
    if dtype == "float32" and PRECISIONS[precision] == "tf32":
        bits = f"({first}).to(tl.int32, bitcast=True)"
        rounded = f"(({bits} + 0x1000) & -0x2000).to(tl.float32, bitcast=True)"
        first = f"tl.where({first} == {first}, {rounded}, {first})"
    how = f', input_precision="{PRECISIONS[precision]}"' if dtype == "float32" else ""
    return f"tl.dot({first}, {second}, {sums}{how})"


def sums_type(dtype: str) -> str:
    """The type in which products are added."""
    return "tl.int32" if dtype == "int8" else "tl.float32"


def tiled(
    draft: Draft, name: str, extent: int, tile: int, start: str, axis: str, whole: int | None = None
) -> Variable:
    """A variable over one tile of `tile` elements, with its mask where the last tile is not full.

    All tiles together cover `whole` elements: as few as possible, unless said otherwise.
    """
    draft.line(f"{name} = ({start} + tl.arange(0, {tile})){axis}")
    if extent % tile == 0 and whole in (None, extent):
        return Variable(name, extent)
    draft.line(f"{name}_ok = {name} < {extent}")
    return Variable(name, extent, f"{name}_ok")
