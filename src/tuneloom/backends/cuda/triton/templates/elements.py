"""Chains of elementwise operators and views, every element once."""

from math import ceil, prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, KnobChoices, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import regrouped
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.cuda.triton.templates.tiles import tiled
from tuneloom.backends.cuda.triton.writing import Draft
from tuneloom.backends.meaning import Meaning

_MOST_A_THREAD = 32


def _count(meaning: Meaning) -> int:
    """Elements of the outputs, which all have as many; 0 if they differ or nothing is computed."""
    counts = {prod(meaning.type_of(each).shape) for each in meaning.outputs}
    return counts.pop() if len(counts) == 1 and meaning.steps else 0


def _space(meaning: Meaning, gpu: Gpu) -> KnobChoices | None:
    count = _count(meaning)
    if not count:
        return None
    blocks = tuple(each for each in (128, 256, 512, 1024, 2048, 4096) if each < 2 * max(count, 128))
    knobs = {"block": blocks, "warps": (1, 2, 4, 8)}
    guesses = [
        {"block": block, "warps": warps}
        for block, warps in (
            (1024, 4),
            (512, 4),
            (256, 2),
            (2048, 8),
            (512, 2),
            (256, 1),
            (128, 4),
            (4096, 8),
        )
        if block in blocks
    ]
    if count < 1024 * gpu.multiprocessors:
        guesses.sort(key=lambda each: each["block"])
    return KnobChoices(knobs=knobs, guesses=tuple(guesses))


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    threads = configuration["warps"] * 32
    if not threads <= configuration["block"] <= _MOST_A_THREAD * threads:
        return f"{threads} threads for {configuration['block']} elements"
    return ""


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> TritonProgram:
    count, block = _count(meaning), configuration["block"]
    draft = Draft(meaning, anywhere=True)
    element = tiled(draft, "e", count, block, f"tl.program_id(0) * {block}", "")
    for number, value in enumerate(meaning.outputs):
        place = regrouped((element.whole(),), meaning.type_of(value).shape)
        if place is None:
            raise Unfit("an output that can't be taken apart")
        draft.store(number, place, draft.read(value, place))
    return TritonProgram(
        kernels=(draft.text("elements", (ceil(count / block), 1, 1), warps=configuration["warps"]),)
    )


ELEMENTS = Template(name="elements", space=_space, refusal=_refusal, program=_program)
