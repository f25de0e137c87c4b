"""Kernels whose result is a matrix of sums: their space, their limits, and sums split among blocks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice, product
from math import ceil
from typing import Protocol

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable
from tuneloom.backends.cuda.triton.expressions import BYTES
from tuneloom.backends.cuda.triton.programs import KernelText, TritonProgram
from tuneloom.backends.cuda.triton.templates.tiles import sums_type, tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning, TensorType

_PRODUCTS_PER_CYCLE = {"float16": 2000.0, "bfloat16": 2000.0, "float8_e4m3fn": 4000.0}
_SMALL_PER_CYCLE = 4000.0
_FLOAT32_PER_CYCLE = (98.0, 262.0, 559.0)
"""By the knob `precision`."""
_THREE_PRODUCTS = {
    16: {16: 4.8, 32: 2.3, 64: 1.9, 128: 1.85, 256: 3.0},
    32: {16: 3.2, 32: 3.1, 64: 1.6, 128: 1.7, 256: 2.1},
    64: {16: 1.95, 32: 1.65, 64: 2.8, 128: 4.0},
    128: {16: 2.2, 32: 2.1, 64: 2.2},
    256: {16: 3.0, 32: 3.0},
}
_THREE_PRODUCTS_DEEP = {128: 1.6, 256: 30.0}
_THREE_PRODUCTS_LARGE, _THREE_PRODUCTS_WORST = 1.2, 5.0
"""How much longer than estimated float32 as three products takes, by rows, columns and depth of a tile.

Medians of 700 measurements on an H200: halves of both factors are in registers, which deep tiles exceed.
"""

_LEAST_DEPTH = {"float32": 8, "float16": 16, "bfloat16": 16}
_MOST_SUMS = 128
_MOST_WRITTEN_OUT = 2048
_WARP = 32
_GUESSES = 16
_FEW = 2**19
_MUCH = 64 * 64
_LARGE = 64 * 64 * 64
_STEADY_TILES = (
    {"tile_m": 128, "tile_n": 256, "tile_k": 64, "warps": 8, "stages": 4},
    {"tile_m": 128, "tile_n": 256, "tile_k": 64, "warps": 8, "stages": 3},
    {"tile_m": 256, "tile_n": 128, "tile_k": 64, "warps": 8, "stages": 3},
)
"""The best of persistent products on an H200: 192 microseconds for 4096 rows, columns and depth in half."""
_FIXED = frozenset(("precision", "persistent", "descriptors"))


class Sums(Protocol):
    """`batch` matrices of `rows` x `columns` sums over `depth`, which one step of a meaning computes."""

    @property
    def meaning(self) -> Meaning: ...
    @property
    def value(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def depth(self) -> int: ...
    def place(self, batch: Variable, row: Variable, column: Variable) -> Place: ...


@dataclass(frozen=True, slots=True)
class Tile:
    """The variables of one block of a kernel; `split` blocks share the depth."""

    batch: Variable
    row: Variable
    column: Variable
    split: int

    def part(self, steps: int, size: int) -> tuple[int, str, int]:
        """Of all steps through the depth: how many a block does, where each starts, what all cover."""
        each = ceil(steps / self.split)
        first = f"(tl.program_id(2) * {each} + step)" if self.split > 1 else "step"
        return each, f"{first} * {size}", each * self.split * size


Loop = Callable[[Draft, Tile], None]


def matrix_space(
    found: Sums, gpu: Gpu, precisions: tuple[int, ...], more: Mapping[str, tuple[int, ...]]
) -> KnobChoices:
    """Knobs for a matrix of sums, with the best guesses by a rough estimate."""
    splits = (1,) if found.dtype == "int8" else (1, 2, 4, 8)
    knobs = {
        "tile_m": _tiles(found.rows, 16, 256),
        "tile_n": _tiles(found.columns, 16, 256),
        "tile_k": tuple(each for each in (16, 32, 64, 128, 256) if each <= max(32, 2 * found.depth)),
        "warps": (2, 4, 8),
        "stages": (2, 3, 4, 5, 6),
        "group": (1, 4, 8, 16) if found.rows > 256 else (1,),
        "split": tuple(each for each in splits if found.depth >= 128 * each or each == 1),
        "precision": precisions,
        "persistent": (0, 1) if 1 in more.get("descriptors", ()) and _is_much(found, gpu) else (0,),
        **more,
    }
    guesses = _best(
        _likely(knobs),
        lambda each: not refused(found, gpu, each),
        lambda each: _estimate(found, gpu, each),
        _GUESSES,
    )
    steady = [each for each in _steady(knobs) if not refused(found, gpu, each)]
    return KnobChoices(knobs=knobs, guesses=(*steady, *guesses)[:_GUESSES])


def _steady(knobs: Mapping[str, tuple[int, ...]]) -> Iterator[Configuration]:
    """Configurations in which a block computes one tile after another, if there are any."""
    if 1 not in knobs["persistent"]:
        return
    always = {"group": knobs["group"][-1], "split": 1, "persistent": 1, "descriptors": 1}
    for tile in _STEADY_TILES:
        chosen = {**tile, **always, "precision": knobs["precision"][0]}
        if all(chosen[name] in values for name, values in knobs.items()):
            yield {name: chosen[name] for name in knobs}


def _is_much(found: Sums, gpu: Gpu) -> bool:
    return found.rows * found.columns > _MUCH * gpu.multiprocessors


def _tiles(extent: int, least: int, most: int) -> tuple[int, ...]:
    """Powers of two up to the first that covers the extent."""
    powers = [least << shift for shift in range(10) if least << shift <= most]
    return tuple(each for each in powers if each < 2 * max(extent, least))


def _likely(knobs: Mapping[str, tuple[int, ...]]) -> Iterator[Configuration]:
    """Configurations worth an estimate: the other knobs follow from the tile."""
    depths = [each for each in knobs["tile_k"] if each >= 32]
    fixed = {
        "group": 8 if 8 in knobs["group"] else 1,
        **{name: knobs[name][0] for name in _FIXED & knobs.keys()},
    }
    for tile_m, tile_n, tile_k, stages, split in product(
        knobs["tile_m"], knobs["tile_n"], depths, (3, 4), knobs["split"]
    ):
        warps = 8 if tile_m * tile_n > 128 * 128 else 4
        tile = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "warps": warps, "stages": stages}
        chosen = {**tile, "split": split, **fixed}
        yield {name: chosen[name] for name in knobs}


def _best(
    candidates: Iterable[Configuration],
    fits: Callable[[Configuration], bool],
    cost: Callable[[Configuration], float],
    count: int,
) -> tuple[Configuration, ...]:
    """The cheapest valid candidates, no two with the same tile."""
    chosen: dict[tuple[int, ...], Configuration] = {}
    for each in sorted(filter(fits, candidates), key=cost):
        chosen.setdefault(tuple(each[name] for name in ("tile_m", "tile_n", "tile_k", "split")), each)
    return tuple(islice(chosen.values(), count))


def _shared_bytes(configuration: Configuration, dtype: str) -> int:
    rows, columns, depth = (configuration[name] for name in ("tile_m", "tile_n", "tile_k"))
    return configuration["stages"] * (rows + columns) * depth * BYTES[dtype]


def refused(found: Sums, gpu: Gpu, configuration: Configuration) -> str:
    """Why a tile does not fit into shared memory and registers; empty if it should."""
    rows, columns, depth = (configuration[name] for name in ("tile_m", "tile_n", "tile_k"))
    threads = configuration["warps"] * _WARP
    shared, least = _shared_bytes(configuration, found.dtype), _LEAST_DEPTH.get(found.dtype, 32)
    if shared > gpu.shared_bytes:
        return f"needs {shared} bytes of shared memory of {gpu.shared_bytes}"
    if rows * columns > _MOST_SUMS * threads:
        return f"{rows}x{columns} sums don't fit into the registers of {threads} threads"
    exact = found.dtype == "float32" and configuration["precision"] == 0
    if exact and rows * columns * depth > _MOST_WRITTEN_OUT * threads:
        return f"{rows * columns * depth // threads} products a thread are slow to compile and to run"
    if depth < least:
        return f"a depth of {depth} is less than the {least} of an instruction"
    steps = ceil(found.depth / depth)
    if configuration["split"] > steps:
        return f"{steps} steps can't be split in {configuration['split']}"
    return _persistent_refusal(found, gpu, configuration) if configuration["persistent"] else ""


def _persistent_refusal(found: Sums, gpu: Gpu, configuration: Configuration) -> str:
    if _blocks(found, configuration) <= gpu.multiprocessors:
        return "no block would get a second tile"
    if not configuration.get("descriptors"):
        return "loads without descriptors are not overlapped across tiles"
    return "tiles are not split" if configuration["split"] > 1 else ""


def _blocks(found: Sums, configuration: Configuration) -> int:
    return ceil(found.rows / configuration["tile_m"]) * ceil(found.columns / configuration["tile_n"])


def _estimate(found: Sums, gpu: Gpu, configuration: Configuration) -> float:
    """Cycles, roughly; the constants are fitted to products of real networks on an H200."""
    tile_m, tile_n, tile_k = (configuration[name] for name in ("tile_m", "tile_n", "tile_k"))
    split = configuration["split"]
    rounds = found.batch * _blocks(found, configuration) * split / gpu.multiprocessors
    steps = ceil(ceil(found.depth / tile_k) / split)
    wide = min(1.0, (tile_m * tile_n) / (128 * 256)) ** 0.2
    busy = max(
        tile_m * tile_n * tile_k / (_rate(found.dtype, configuration) * wide),
        (tile_m + tile_n) * tile_k * BYTES[found.dtype] / 68.0,
    )
    alone = max(busy, 343.0 / max(configuration["stages"] - 1, 1)) + 13.0
    together = min(ceil(rounds), 3, max(1, gpu.shared_bytes // _shared_bytes(configuration, found.dtype)))
    cycles = ceil(rounds / together) * steps * max(busy * together, alone)
    cycles *= _in_registers(found.dtype, configuration)
    cycles += 1750.0 + tile_m * tile_n / 14.0 * max(1.0, rounds)
    if split > 1:
        cycles += 590.0 + split * found.batch * found.rows * found.columns * 4 / (gpu.multiprocessors * 11.0)
    return float(cycles)


def _in_registers(dtype: str, configuration: Configuration) -> float:
    """How much longer a tile takes whose factors are taken apart in registers."""
    if dtype != "float32" or configuration["precision"] != 1:
        return 1.0
    rows, columns, depth = (configuration[name] for name in ("tile_m", "tile_n", "tile_k"))
    large = _THREE_PRODUCTS_LARGE if rows * columns * depth >= _LARGE else 1.0
    deep = _THREE_PRODUCTS_DEEP.get(depth, 1.0)
    return large * deep * _THREE_PRODUCTS.get(rows, {}).get(columns, _THREE_PRODUCTS_WORST)


def _rate(dtype: str, configuration: Configuration) -> float:
    """Products a multiprocessor makes in a cycle.

    Tiles of few rows can't use the widest instruction. Second factors of whole numbers are transposed first.
    """
    if dtype == "float32":
        return _FLOAT32_PER_CYCLE[configuration["precision"]]
    rate = _PRODUCTS_PER_CYCLE.get(dtype) or _SMALL_PER_CYCLE * min(1.0, 64 / configuration["tile_n"])
    return rate if configuration["tile_m"] >= 64 else 0.43 * rate


def finished(
    prefix: str, found: Sums, gpu: Gpu, configuration: Configuration, prepare: Callable[[Draft], Loop]
) -> TritonProgram:
    """The program around a loop that adds to `sums`.

    `prepare` writes what is needed once and returns the function that writes the loop for a tile.
    """
    split, blocks = configuration["split"], _blocks(found, configuration)
    draft = Draft(found.meaning, scratch=("float32",) if split > 1 else ())
    draft.line("batch = tl.program_id(1)")
    write = prepare(draft)
    if split > 1:
        return _split(prefix, draft, found, configuration, write)
    programs = min(blocks, gpu.multiprocessors) if configuration["persistent"] else blocks
    head = f"for block in tl.range(tl.program_id(0), {blocks}, {programs}, flatten=True):"
    with draft.block(head) if configuration["persistent"] else nullcontext():
        if not configuration["persistent"]:
            draft.line("block = tl.program_id(0)")
        tile = _summed(draft, found, configuration, write)
        draft.know(found.value, found.place(tile.batch, tile.row, tile.column), "sums")
        draft.finish()
    return TritonProgram(kernels=(_text(draft, prefix, (programs, found.batch, 1), configuration),))


def _summed(draft: Draft, found: Sums, configuration: Configuration, write: Loop) -> Tile:
    """Write the sums of one tile."""
    tile_m, tile_n = configuration["tile_m"], configuration["tile_n"]
    _order(draft, ceil(found.rows / tile_m), ceil(found.columns / tile_n), configuration["group"])
    tile = _tile(draft, found, tile_m, tile_n, configuration["split"])
    draft.line(f"sums = tl.zeros(({tile_m}, {tile_n}), {sums_type(found.dtype)})")
    write(draft, tile)
    return tile


def _split(
    prefix: str, draft: Draft, found: Sums, configuration: Configuration, write: Loop
) -> TritonProgram:
    """Blocks share the depth of a tile; a second kernel adds up their sums and goes on."""
    if found.dtype == "int8":
        raise Unfit("sums of whole numbers are not split")
    split = configuration["split"]
    draft.line("block = tl.program_id(0)")
    tile = _summed(draft, found, configuration, write)
    partial = TensorType(shape=(split, found.batch, found.rows, found.columns), dtype="float32")
    part = Variable("tl.program_id(2)", split)
    place = (part.whole(), tile.batch.whole(), tile.row.whole(), tile.column.whole())
    draft.write("scratch0", partial, place, "sums")
    kernel = _text(draft, prefix, (_blocks(found, configuration), found.batch, split), configuration)
    return TritonProgram(kernels=(kernel, _added_up(found, partial)), scratch=(partial,))


def _text(draft: Draft, prefix: str, grid: tuple[int, int, int], configuration: Configuration) -> KernelText:
    return draft.text(prefix, grid, warps=configuration["warps"], stages=configuration["stages"])


def _tile(draft: Draft, found: Sums, tile_m: int, tile_n: int, split: int) -> Tile:
    return Tile(
        batch=Variable("batch", found.batch),
        row=tiled(draft, "m", found.rows, tile_m, f"row * {tile_m}", "[:, None]"),
        column=tiled(draft, "n", found.columns, tile_n, f"column * {tile_n}", "[None, :]"),
        split=split,
    )


def _added_up(found: Sums, partial: TensorType) -> KernelText:
    """The kernel that adds parts of sums and computes what follows them."""
    draft = Draft(found.meaning, scratch=("float32",))
    tile_n = 128
    tile_m = 2 if found.batch * found.rows * found.columns < _FEW else 8
    rows, columns = ceil(found.rows / tile_m), ceil(found.columns / tile_n)
    draft.line("batch = tl.program_id(1)")
    draft.line("block = tl.program_id(0)")
    _order(draft, rows, columns, 1)
    tile = _tile(draft, found, tile_m, tile_n, 1)
    place = (tile.batch.whole(), tile.row.whole(), tile.column.whole())
    texts = [
        draft.load("scratch0", partial, (Coordinate(shift=part), *place)) for part in range(partial.shape[0])
    ]
    draft.know(found.value, found.place(tile.batch, tile.row, tile.column), draft.named(" + ".join(texts)))
    draft.finish()
    return draft.text("sum", (rows * columns, found.batch, 1), warps=4)


def _order(draft: Draft, rows: int, columns: int, group: int) -> None:
    """Names `row` and `column` of the tile `block`: tiles of `group` rows are done together."""
    if group == 1:
        draft.line(f"row = block // {columns}")
        draft.line(f"column = block % {columns}")
        return
    draft.line(f"first = block // {group * columns} * {group}")
    draft.line(f"height = tl.minimum({rows} - first, {group})" if rows % group else f"height = {group}")
    draft.line(f"row = first + block % {group * columns} % height")
    draft.line(f"column = block % {group * columns} // height")
