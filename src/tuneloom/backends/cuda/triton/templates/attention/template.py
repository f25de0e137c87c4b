"""Attention as a template: its knobs and what fits."""

from math import ceil

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.expressions import BYTES
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.attention.finding import Attention, attention_of, padded
from tuneloom.backends.cuda.triton.templates.attention.kernel import AttentionKernel
from tuneloom.backends.cuda.triton.templates.attention.places import matrices
from tuneloom.backends.cuda.triton.templates.tiles import precisions_of
from tuneloom.backends.meaning import Meaning

_FIRST_WITH_DESCRIPTORS = 90
_MANY_KEYS = 2048
_ALONE = 1.6
"""What a single warp costs, which waits for all that it reads: for one row, 7.4 microseconds, not 5.6."""
_LESS_BUSY = 1.25
"""What warps that wait for each other cost, and rows that a causal mask hides in part."""
_JOINING = 14000.0
"""What a second kernel costs, in the units of the estimate."""


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    found = attention_of(meaning, gpu)
    if found is None:
        return None
    knobs = {
        "tile_m": tuple(each for each in (16, 32, 64, 128) if each < 2 * max(found.queries, 16)),
        "tile_n": tuple(each for each in (16, 32, 64, 128) if each < 2 * max(found.keys, 16)),
        "warps": (1, 2, 4, 8),
        "stages": (2, 3, 4),
        "split": _splits(found, gpu),
        "precision": precisions_of(found.first, found.dtype),
        "descriptors": (0, 1) if gpu.arch >= _FIRST_WITH_DESCRIPTORS and _has_descriptors(found) else (0,),
    }
    order = [
        (64, 128, 4, 3), (64, 64, 4, 3), (128, 64, 4, 3), (64, 128, 4, 2), (128, 128, 8, 3), (64, 32, 4, 3),
        (32, 128, 4, 3), (32, 64, 4, 3), (16, 128, 4, 3), (16, 128, 4, 2), (16, 64, 4, 3), (16, 32, 1, 3),
        (16, 16, 1, 2),
    ]  # fmt: skip
    fixed = {"split": 1, "precision": knobs["precision"][0], "descriptors": 0}
    guesses = [
        {"tile_m": m, "tile_n": n, "warps": warps, "stages": stages, **fixed, "split": split}
        for m, n, warps, stages in order
        for split in knobs["split"]
        if m in knobs["tile_m"] and n in knobs["tile_n"]
    ]
    if 1 in knobs["descriptors"] and found.keys >= _MANY_KEYS:
        wide = {"tile_m": 128, "tile_n": 128, "warps": 4, "stages": 3, **fixed, "descriptors": 1}
        guesses += [wide] if 128 in knobs["tile_m"] else []
    guesses = [each for each in guesses if not _refusal(meaning, gpu, each)]
    guesses.sort(key=lambda each: _rounds(found, gpu, each))
    return KnobChoices(knobs=knobs, guesses=tuple(guesses))


def _splits(found: Attention, gpu: Gpu) -> tuple[int, ...]:
    """Among how many blocks the keys of a row may be shared: some, where there are few rows."""
    blocks = found.batch * ceil(found.queries / 64)
    few = blocks * (1 if found.queries <= 16 else 2) <= gpu.multiprocessors and found.causal is None
    return tuple(each for each in (1, 2, 4, 8, 16) if each == 1 or (few and found.keys >= 64 * each))


def _rounds(found: Attention, gpu: Gpu, configuration: Configuration) -> float:
    """A rough time: rounds of blocks, each with a fixed part and parts that grow with its rows and keys."""
    split = configuration["split"]
    blocks = found.batch * ceil(found.queries / configuration["tile_m"]) * split
    steps = ceil(found.keys / (configuration["tile_n"] * split))
    each = float((24 + configuration["tile_m"]) * steps * (16 + configuration["tile_n"]))
    if configuration["warps"] > 4 or (found.causal is not None and configuration["tile_m"] > 64):
        each *= _LESS_BUSY
    if configuration["warps"] == 1:
        each *= _ALONE
    return max(1.0, blocks / gpu.multiprocessors) * each + (_JOINING if split > 1 else 0)


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = attention_of(meaning, gpu)
    assert found is not None
    tile_m, tile_n = configuration["tile_m"], configuration["tile_n"]
    width, value_width = padded(found.width), padded(found.value_width)
    threads, split = configuration["warps"] * 32, configuration["split"]
    if split > ceil(found.keys / tile_n):
        return f"{found.keys} keys can't be split in {split}"
    read = tile_m * width + configuration["stages"] * tile_n * (width + value_width)
    if read * BYTES[found.dtype] > gpu.shared_bytes:
        return f"needs {read * BYTES[found.dtype]} bytes of shared memory of {gpu.shared_bytes}"
    if tile_m * (tile_n + value_width) > 192 * threads:
        return f"sums of {tile_m} rows don't fit into the registers of {threads} threads"
    if configuration["warps"] * 16 > tile_m and tile_n < 32:
        return (
            f"{tile_m}x{tile_n} scores are too few for {threads} threads"  # Triton's code reads out of bounds
        )
    return ""


def _has_descriptors(found: Attention) -> bool:
    return None not in matrices(found)


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    found = attention_of(meaning, gpu)
    if found is None:
        raise Unfit("no attention")
    return AttentionKernel(found, configuration).program()


ATTENTION = Template(name="attention", space=_space, refusal=_refusal, program=_program)
