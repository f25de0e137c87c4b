"""Matrix products, plain or batched, operands read through views, with elementwise steps behind."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped, strides, times
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.matrices import Loop, Tile, finished, matrix_space, refused
from tuneloom.backends.cuda.triton.templates.tiles import dot, precisions_of, tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, MeaningStep

_FIRST_WITH_DESCRIPTORS = 90
_LEAST_DESCRIBED = 64
_ALIGNED = 16


@dataclass(frozen=True, slots=True)
class Product:
    """A product in a meaning: `batch` products of `rows` x `depth` by `depth` x `columns`."""

    meaning: Meaning
    value: int
    step: MeaningStep
    dtype: str
    batch: int
    rows: int
    columns: int
    depth: int

    def place(self, batch: Variable, row: Variable, column: Variable) -> Place:
        """Where an element of the product lies."""
        result = self.step.result.shape
        if self.batch == 1:
            return (*_required(regrouped((row.whole(),), result[:-1])), column.whole())
        return (*_required(regrouped((batch.whole(),), result[:-2])), row.whole(), column.whole())

    def factors(
        self, batch: Variable, row: Variable, column: Variable, depths: tuple[Variable, Variable]
    ) -> tuple[Place, Place]:
        """Where the elements of both factors lie."""
        first, second = (self.meaning.type_of(each).shape for each in self.step.operands)
        if self.batch == 1:
            rows = _required(regrouped((row.whole(),), first[:-1]))
            ones: Place = (Coordinate(),) * (len(second) - 2)
            return (*rows, depths[0].whole()), (*ones, depths[1].whole(), column.whole())
        outer = _required(regrouped((batch.whole(),), self.step.result.shape[:-2]))
        return (
            (*_aligned(outer, first[:-2]), row.whole(), depths[0].whole()),
            (*_aligned(outer, second[:-2]), depths[1].whole(), column.whole()),
        )


def _required(place: Place | None) -> Place:
    if place is None:
        raise Unfit("a batch that can't be taken apart")
    return place


def _aligned(outer: Place, shape: tuple[int, ...]) -> Place:
    lowest = outer[len(outer) - len(shape) :] if shape else ()
    return tuple(Coordinate() if extent == 1 else each for each, extent in zip(lowest, shape, strict=True))


@lru_cache(maxsize=256)
def _found(meaning: Meaning) -> Product | None:
    products = [
        (value, step)
        for value, step in enumerate(meaning.steps, len(meaning.inputs))
        if step.operator == "relax.matmul"
    ]
    return _described(meaning, *products[0]) if len(products) == 1 else None


def _described(meaning: Meaning, value: int, step: MeaningStep) -> Product | None:
    first, second = (meaning.type_of(each) for each in step.operands)
    if min(len(first.shape), len(second.shape)) < 2 or first.dtype != second.dtype:
        return None
    *outer, rows, columns = step.result.shape
    batch, depth = prod(outer), first.shape[-1]
    if prod(second.shape[:-2]) == 1 and prod(first.shape[:-2]) == batch:
        rows, batch = rows * batch, 1
    return Product(meaning, value, step, first.dtype, batch, rows, columns, depth)


def product_of(meaning: Meaning, gpu: Gpu) -> Product | None:
    """The product of a meaning that has exactly one, if the GPU multiplies its type."""
    found = _found(meaning)
    return found if found is not None and gpu.computes(found.dtype) else None


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = product_of(meaning, gpu)
    if found is None:
        return None
    descriptors = (0, 1) if gpu.arch >= _FIRST_WITH_DESCRIPTORS and _has_descriptors(found) else (0,)
    return matrix_space(found, gpu, precisions_of(found.step, found.dtype), {"descriptors": descriptors})


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = product_of(meaning, gpu)
    assert found is not None
    return refused(found, gpu, configuration)


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = product_of(meaning, gpu)
    if found is None:
        raise Unfit("not one product")

    def prepare(draft: Draft) -> Loop:
        blocks = _blocks(draft, found, configuration) if configuration["descriptors"] else None
        return lambda draft, tile: _multiply(draft, found, tile, configuration, blocks)

    return finished("product", found, gpu, configuration, prepare)


def _multiply(
    draft: Draft, found: Product, tile: Tile, configuration: Configuration, blocks: tuple[str, str] | None
) -> None:
    """Write the loop over the depth."""
    tile_k = configuration["tile_k"]
    each, start, whole = tile.part(ceil(found.depth / tile_k), tile_k)
    with draft.block(f"for step in range(0, {each}):"):
        if blocks is not None:
            left, right = (draft.named(form.format(start)) for form in blocks)
        else:
            depths = (
                tiled(draft, "ka", found.depth, tile_k, start, "[None, :]", whole=whole),
                tiled(draft, "kb", found.depth, tile_k, start, "[:, None]", whole=whole),
            )
            places = found.factors(tile.batch, tile.row, tile.column, depths)
            left, right = (draft.raw(*pair) for pair in zip(found.step.operands, places, strict=True))
        sums = dot(left, right, "sums", found.dtype, configuration["precision"], configuration["tile_k"])
        draft.line(f"sums = {sums}")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A factor as a matrix in memory: an input from `shift` on; `turned` if its depth is the outer axis.

    Neighbouring rows are `stride` elements apart, matrices of a batch `batch_stride`.
    """

    value: int
    shift: int
    stride: int
    batch_stride: int
    turned: bool


def matrices(found: Product) -> tuple[Matrix, Matrix] | None:
    """Both factors behind views as plain matrices, all strides multiples of 16; None if one is none."""
    first, second = _matrix(found, 0), _matrix(found, 1)
    return None if first is None or second is None else (first, second)


def _matrix(found: Product, operand: int) -> Matrix | None:
    draft = Draft(found.meaning)
    batch, depth = Variable("batch", found.batch), Variable("depth", found.depth)
    row, column = Variable("row", found.rows), Variable("column", found.columns)
    place = found.factors(batch, row, column, (depth, depth))[operand]
    source = draft.source(found.step.operands[operand], place)
    if source is None:
        return None
    terms, shift = strides(source[1], draft.meaning.inputs[source[0]].shape)
    whole = {digit.variable: step for digit, step in terms if digit.extent == digit.variable.extent}
    mine, deep = whole.get((row, column)[operand]), whole.get(depth)
    if len(whole) < len(terms) or mine is None or deep is None or 1 not in (mine, deep):
        return None
    if any(step % _ALIGNED for step in (*whole.values(), shift) if step != 1) or mine == deep:
        return None
    return Matrix(source[0], shift, max(mine, deep), whole.get(batch, 0), turned=deep != 1)


def _has_descriptors(found: Product) -> bool:
    return min(found.rows, found.columns, found.depth) >= _LEAST_DESCRIBED and matrices(found) is not None


def _blocks(draft: Draft, found: Product, configuration: Configuration) -> tuple[str, str]:
    """Describe both factors; returns how their tiles are loaded, with `{}` for the first of the depth."""
    factors = matrices(found)
    if factors is None:
        raise Unfit("a factor that is no plain matrix")
    forms, deep = [], configuration["tile_k"]
    sides = ((found.rows, "tile_m", "row"), (found.columns, "tile_n", "column"))
    for operand, (matrix, (extent, knob, number)) in enumerate(zip(factors, sides, strict=True)):
        wide = configuration[knob]
        shape, block = [extent, found.depth], [wide, deep]
        if matrix.turned:
            shape, block = shape[::-1], block[::-1]
        pointer = f"input{matrix.value} + {times('batch', matrix.batch_stride)} + {matrix.shift}"
        strided = f"{shape}, [{matrix.stride}, 1], {block}"
        draft.line(f"matrix{operand} = tl.make_tensor_descriptor({pointer}, {strided})")
        start = f"[{{}}, {number} * {wide}]" if matrix.turned else f"[{number} * {wide}, {{}}]"
        turn = ".T" if matrix.turned == (operand == 0) else ""
        forms.append(f"matrix{operand}.load({start}){turn}")
    return forms[0], forms[1]


PRODUCTS = Template(name="product", space=_space, refusal=_refusal, program=_program)
