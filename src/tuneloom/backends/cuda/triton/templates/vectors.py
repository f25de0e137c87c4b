"""Products of a single row: as fast as weights can be read, which tensor cores don't help with.

A block reads some columns of the weights, as many rows of them at once as its threads can wait for, and sums
their products with the row in registers.
"""

from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Variable
from tuneloom.backends.cuda.triton.expressions import is_float
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.products import Product, product_of
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning

_LEAST_A_THREAD, _MOST_A_THREAD = 4, 64
_BUSY_A_THREAD = 32
_GUESSES = 8
_WRITTEN_OUT = 4


def _vector(meaning: Meaning, gpu: Gpu) -> Product | None:
    found = product_of(meaning, gpu)
    return found if found is not None and found.rows == found.batch == 1 and is_float(found.dtype) else None


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = _vector(meaning, gpu)
    if found is None or found.columns < 8 or found.depth < 8:
        return None
    knobs = {
        "columns": tuple(each for each in (8, 16, 32, 64, 128) if each < 2 * found.columns),
        "depth": tuple(each for each in (16, 32, 64, 128, 256, 512, 1024) if each < 2 * max(found.depth, 16)),
        "warps": (2, 4, 8, 16),
    }
    every = KnobChoices(knobs=knobs, guesses=()).everything()
    guesses = sorted(
        (each for each in every if not _refusal(meaning, gpu, each)),
        key=lambda each: _estimate(found, gpu, each),
    )
    return KnobChoices(knobs=knobs, guesses=tuple(guesses[:_GUESSES]))


def _estimate(found: Product, gpu: Gpu, configuration: Configuration) -> float:
    """How long the busiest multiprocessor waits for its weights, in turns of reading."""
    columns, depth, threads = configuration["columns"], configuration["depth"], configuration["warps"] * 32
    blocks = ceil(found.columns / columns)
    rounds = ceil(blocks / gpu.multiprocessors)
    together = max(1, min(rounds, 2048 // threads))
    turns = ceil(found.depth / depth) * ceil(rounds / together)
    piece = columns * depth * 2.0 * together / 24576.0  # bytes that come with one turn
    sparse = 32.0 / min(32, 2 * columns)  # of a sector's 32 bytes
    crowded = max(1.0, columns * depth / threads / _BUSY_A_THREAD)
    return float(turns * (1.0 + piece * sparse) * crowded**0.5 + threads / 2048.0)


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    elements, threads = configuration["columns"] * configuration["depth"], configuration["warps"] * 32
    if not _LEAST_A_THREAD * threads <= elements <= _MOST_A_THREAD * threads:
        return f"{threads} threads for {elements} elements"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = _vector(meaning, gpu)
    if found is None:
        raise Unfit("not one row")
    columns, depth = configuration["columns"], configuration["depth"]
    draft, one = Draft(meaning), Variable("0", 1)
    column = tiled(draft, "n", found.columns, columns, f"tl.program_id(0) * {columns}", "[None, :]")
    draft.line(f"parts = tl.zeros(({depth}, {columns}), tl.float32)")
    turns = ceil(found.depth / depth)
    loop = "tl.static_range" if turns <= _WRITTEN_OUT else "range"  # written out, all are read at once
    with draft.block(f"for step in {loop}(0, {turns}):"):
        deep = tiled(draft, "k", found.depth, depth, f"step * {depth}", "[:, None]")
        row, weights = found.factors(one, one, column, (deep, deep))
        first, second = (draft.raw(*pair) for pair in zip(found.step.operands, (row, weights), strict=True))
        draft.line(f"parts += {first}.to(tl.float32) * {second}.to(tl.float32)")
    total = draft.named("tl.sum(parts, axis=0)[None, :]")
    draft.know(found.value, found.place(one, one, column), total)
    draft.finish()
    grid = (ceil(found.columns / columns), 1, 1)
    return TritonProgram(kernels=(draft.text("vector", grid, warps=configuration["warps"]),))


VECTORS = Template(name="vector", space=_space, refusal=_refusal, program=_program)
