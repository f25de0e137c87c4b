"""Attention as one kernel: scores stay in registers, and softmax runs along while keys are read."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.claims import Configuration, Space, Template, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped, strides, times
from tuneloom.backends.cuda.triton.expressions import BYTES, TYPES
from tuneloom.backends.cuda.triton.programs import Program
from tuneloom.backends.cuda.triton.templates.tiles import dot, precisions_of, tiled
from tuneloom.backends.cuda.triton.writing import Draft, constant_of, dependants
from tuneloom.backends.meaning import Meaning, Step

_LOG2_E = 1.4426950408889634
_OPERATORS = frozenset(("relax.nn.attention", "relax.nn.attention_bias"))
_LEAST = 16
_ALIGNED = 16
_FIRST_WITH_DESCRIPTORS = 90
_WIDEST = 256


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention in a meaning, written as one operator or as two products with a softmax between.

    `scores` is the value of the first product (None for the operator), `weights` the softmax,
    `result` what the second product or the operator computes.
    """

    meaning: Meaning
    result: int
    scores: int | None
    weights: int | None
    dtype: str
    batch: int
    queries: int
    keys: int
    width: int
    value_width: int

    @property
    def step(self) -> Step:
        """The operator or the second product."""
        step = self.meaning.step_of(self.result)
        assert step is not None
        return step

    @property
    def first(self) -> Step:
        """The step that the queries and keys are operands of."""
        step = self.meaning.step_of(self.result if self.scores is None else self.scores)
        assert step is not None
        return step

    def shape(self, value: int) -> tuple[int, ...]:
        """The shape of a value."""
        return self.meaning.type_of(value).shape


@lru_cache(maxsize=256)
def _found(meaning: Meaning) -> Attention | None:
    for value, step in enumerate(meaning.steps, len(meaning.inputs)):
        if step.operator in _OPERATORS:
            return _operator(meaning, value, step)
        if step.operator == "relax.nn.softmax":
            return _products(meaning, value, step)
    return None


def _operator(meaning: Meaning, value: int, step: Step) -> Attention | None:
    q, k, v = (meaning.type_of(each) for each in step.operands[:3])
    if len({q.dtype, k.dtype, v.dtype}) > 1 or step.attributes.get("window_size") is not None:
        return None
    batch, queries, heads, width = q.shape
    if heads % k.shape[2]:
        return None
    return Attention(
        meaning, value, None, None, q.dtype, batch * heads, queries, k.shape[1], width, v.shape[3]
    )


def _products(meaning: Meaning, weights: int, softmax: Step) -> Attention | None:
    count = len(meaning.inputs)
    products = [n for n, step in enumerate(meaning.steps, count) if step.operator == "relax.matmul"]
    rank = len(softmax.result.shape)
    if len(products) != 2 or rank < 2 or softmax.attributes.get("axis", -1) % rank != rank - 1:
        return None
    scores, result = products
    first, last = meaning.steps[scores - count], meaning.steps[result - count]
    behind = dependants(meaning, frozenset((weights,)))
    if scores > weights or last.operands[1] in behind or _uncast(meaning, last.operands[0]) != weights:
        return None
    *outer, queries, keys = first.result.shape
    types = {meaning.type_of(each).dtype for each in (*first.operands, last.operands[1])}
    if (
        len(types) > 1
        or first.result.shape != softmax.result.shape
        or last.result.shape[:-1] != (*outer, queries)
    ):
        return None
    width = meaning.type_of(first.operands[0]).shape[-1]
    return Attention(
        meaning,
        result,
        scores,
        weights,
        types.pop(),
        prod(outer),
        queries,
        keys,
        width,
        last.result.shape[-1],
    )


def _uncast(meaning: Meaning, value: int) -> int:
    """The value before it was cast to other types."""
    step = meaning.step_of(value)
    return (
        _uncast(meaning, step.operands[0]) if step is not None and step.operator == "relax.astype" else value
    )


def attention_of(meaning: Meaning, gpu: Gpu) -> Attention | None:
    """The attention of a meaning, if the GPU multiplies its type and a row fits."""
    found = _found(meaning)
    floats = ("float16", "bfloat16", "float32")
    if found is None or found.dtype not in floats or not gpu.computes(found.dtype):
        return None
    return found if max(found.width, found.value_width) <= _WIDEST else None


def _has_descriptors(found: Attention) -> bool:
    return None not in _Writer(found, {}).matrices()


def _padded(width: int) -> int:
    return max(_LEAST, 1 << (width - 1).bit_length())


def _space(meaning: Meaning, gpu: Gpu) -> Space | None:
    found = attention_of(meaning, gpu)
    if found is None:
        return None
    knobs = {
        "tile_m": tuple(each for each in (16, 32, 64, 128) if each < 2 * max(found.queries, 16)),
        "tile_n": tuple(each for each in (16, 32, 64, 128) if each < 2 * max(found.keys, 16)),
        "warps": (1, 2, 4, 8),
        "stages": (2, 3, 4),
        "precision": precisions_of(found.first, found.dtype),
        "descriptors": (0, 1) if gpu.arch >= _FIRST_WITH_DESCRIPTORS and _has_descriptors(found) else (0,),
    }
    order = [
        (128, 64, 4, 3), (64, 64, 4, 3), (64, 128, 4, 3), (128, 128, 8, 3), (128, 64, 8, 3), (64, 32, 4, 3),
        (32, 128, 4, 3), (32, 64, 4, 3), (16, 128, 4, 2), (16, 128, 4, 3), (16, 64, 4, 3), (16, 32, 1, 3),
        (16, 16, 1, 2),
    ]  # fmt: skip
    fixed = {"precision": knobs["precision"][0], "descriptors": 0}
    guesses = [
        {"tile_m": m, "tile_n": n, "warps": warps, "stages": stages, **fixed}
        for m, n, warps, stages in order
        if m in knobs["tile_m"] and n in knobs["tile_n"]
    ]
    guesses = [each for each in guesses if not _refusal(meaning, gpu, each)]
    guesses.sort(key=lambda each: _rounds(found, gpu, each))
    return Space(knobs=knobs, guesses=tuple(guesses))


def _rounds(found: Attention, gpu: Gpu, configuration: Configuration) -> float:
    """A rough time: rounds of blocks, each with a fixed part and one that grows with its rows."""
    blocks = found.batch * ceil(found.queries / configuration["tile_m"])
    return ceil(blocks / gpu.multiprocessors) * (48 + configuration["tile_m"]) * ceil(found.keys / 64)


def _refusal(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> str:
    found = attention_of(meaning, gpu)
    assert found is not None
    tile_m, tile_n = configuration["tile_m"], configuration["tile_n"]
    width, value_width = _padded(found.width), _padded(found.value_width)
    threads = configuration["warps"] * 32
    read = tile_m * width + configuration["stages"] * tile_n * (width + value_width)
    if read * BYTES[found.dtype] > gpu.shared_bytes:
        return f"needs {read * BYTES[found.dtype]} bytes of shared memory of {gpu.shared_bytes}"
    if tile_m * (tile_n + value_width) > 192 * threads:
        return f"sums of {tile_m} rows don't fit into the registers of {threads} threads"
    return ""


class _Writer:
    """Writes one attention kernel."""

    def __init__(self, found: Attention, configuration: Configuration) -> None:
        self._found, self._knobs = found, configuration
        self._draft = Draft(found.meaning)
        self._batch = Variable("z", found.batch)

    def program(self) -> Program:
        """All of the kernel."""
        found, draft, tile_m = self._found, self._draft, self._knobs["tile_m"]
        draft.line("z = tl.program_id(1)")
        self._row = tiled(draft, "i", found.queries, tile_m, f"tl.program_id(0) * {tile_m}", "[:, None]")
        width = tiled(draft, "dq", found.width, _padded(found.width), "0", "[None, :]")
        self._depth = tiled(draft, "dk", found.width, _padded(found.width), "0", "[:, None]")
        self._out = tiled(draft, "c", found.value_width, _padded(found.value_width), "0", "[None, :]")
        draft.line(f"q = {draft.raw(found.first.operands[0], self._query_place(width))}")
        if self._knobs["descriptors"]:
            self._describe()
        draft.line(f"peak = tl.full(({tile_m}, 1), float('-inf'), tl.float32)")
        draft.line(f"total = tl.zeros(({tile_m}, 1), tl.float32)")
        draft.line(f"sums = tl.zeros(({tile_m}, {_padded(found.value_width)}), tl.float32)")
        self._loops()
        draft.know(found.result, self._result_place(), draft.named("sums / total"))
        draft.finish()
        grid = (ceil(found.queries / tile_m), found.batch, 1)
        stages = self._knobs["stages"]
        return Program(kernels=(draft.text("attention", grid, warps=self._knobs["warps"], stages=stages),))

    def _loops(self) -> None:
        """Keys that all rows of the tile see first, then those that a causal mask cuts."""
        keys, tile_n, tile_m = self._found.keys, self._knobs["tile_n"], self._knobs["tile_m"]
        causal = self._causal()
        if causal is None:
            full = keys // tile_n * tile_n
            if full:
                self._loop("0", str(full), False, None)
            if full < keys:
                self._loop(str(full), str(keys), True, None)
            return
        reach = f"tl.program_id(0) * {tile_m} + {causal + 1}"
        self._draft.line(f"whole = tl.minimum(tl.maximum({reach}, 0), {keys}) // {tile_n} * {tile_n}")
        self._draft.line(f"seen = tl.minimum(tl.maximum({reach} + {tile_m - 1}, 0), {keys})")
        self._loop("0", "whole", False, None)
        self._loop("whole", "seen", bool(keys % tile_n), causal)

    def _causal(self) -> int | None:
        """How far past its own number a row sees keys; None if it sees all."""
        how = self._found.step.attributes.get("causal_mask") if self._found.scores is None else None
        return (
            {"TopLeft": 0, "BottomRight": self._found.keys - self._found.queries}.get(str(how))
            if how
            else None
        )

    def _loop(self, start: str, end: str, cut: bool, causal: int | None) -> None:
        draft, tile_n, found = self._draft, self._knobs["tile_n"], self._found
        with draft.block(f"for begin in range({start}, {end}, {tile_n}):"):
            draft.line(f"j = (begin + tl.arange(0, {tile_n}))[None, :]")
            draft.line(f"jv = (begin + tl.arange(0, {tile_n}))[:, None]")
            if cut:
                draft.line(f"j_ok = j < {found.keys}")
                draft.line(f"jv_ok = jv < {found.keys}")
            key = Variable("j", found.keys, "j_ok" if cut else "")
            other = Variable("jv", found.keys, "jv_ok" if cut else "")
            self._step(key, other, causal)

    def _step(self, key: Variable, other: Variable, causal: int | None) -> None:
        draft, found, precision = self._draft, self._found, self._knobs["precision"]
        tile = f"({self._knobs['tile_m']}, {self._knobs['tile_n']})"
        described = self._knobs["descriptors"]
        if described:
            keys = draft.named("matrix_k.load([begin, 0]).T")
        else:
            keys = draft.raw(found.first.operands[1], self._key_place(key))
        scores = draft.named(dot("q", keys, f"tl.zeros({tile}, tl.float32)", found.dtype, precision))
        scores, factor, guarded = self._scores(scores, key)
        valid = [each for each in (key.mask, f"(j <= i + {causal})" if causal is not None else "") if each]
        if valid:
            scores = draft.named(f"tl.where({' & '.join(valid)}, {scores}, float('-inf'))")
        peak = f"tl.max({scores}, axis=1)[:, None] * {factor!r}"
        draft.line(f"high = tl.maximum(peak, {peak})")
        if guarded or causal is not None:
            draft.line("base = tl.where(high == float('-inf'), 0.0, high)")
        else:
            draft.line("base = high")
        weights = draft.named(f"tl.exp2({scores} * {factor!r} - base)")
        draft.line("fade = tl.exp2(peak - base)")
        draft.line(f"total = total * fade + tl.sum({weights}, axis=1)[:, None]")
        draft.line("sums = sums * fade")
        if described:
            values = draft.named("matrix_v.load([begin, 0])")
        else:
            values = draft.raw(self._values(), self._value_place(other))
        cast = f"{weights}.to({TYPES[found.dtype]})"
        draft.line(f"sums = {dot(cast, values, 'sums', found.dtype, precision)}")
        draft.line("peak = high")

    def _scores(self, scores: str, key: Variable) -> tuple[str, float, bool]:
        """The scores before softmax, what is left to multiply them by, and whether they may be -inf."""
        found = self._found
        if found.scores is None:
            scale = found.step.attributes.get("scale") or found.width**-0.5
            if len(found.step.operands) == 3:
                return scores, scale * _LOG2_E, False
            bias = found.step.operands[3]
            place = self._score_place(key, found.shape(bias))
            return self._draft.named(f"{scores} * {scale!r} + {self._draft.read(bias, place)}"), _LOG2_E, True
        factor = self._factor()
        if factor is not None:
            return scores, factor * _LOG2_E, False
        step = found.meaning.step_of(found.weights or 0)
        assert step is not None
        draft = self._draft
        place = self._score_place(key, found.shape(found.scores))
        draft.know(found.scores, place, scores)
        text = draft.read(step.operands[0], place)
        draft.forget(found.scores)
        return text, _LOG2_E, True

    def _factor(self) -> float | None:
        """The positive number by which the scores are multiplied; None if more is done to them."""
        found = self._found
        value, factor = found.meaning.step_of(found.weights or 0).operands[0], 1.0  # type: ignore[union-attr]
        while value != found.scores:
            step = found.meaning.step_of(value)
            if step is None or step.operator not in ("relax.multiply", "relax.divide", "relax.astype"):
                return None
            if step.operator != "relax.astype":
                number = constant_of(found.meaning, step.operands[1])
                if number is None or number <= 0:
                    return None
                factor = factor / number if step.operator == "relax.divide" else factor * number
            value = step.operands[0]
        return factor

    def _describe(self) -> None:
        """Describe keys and values as matrices of the memory that they are in."""
        found, tile_n = self._found, self._knobs["tile_n"]
        own = self._depth, self._out
        matrices = self.matrices()
        self._depth, self._out = own
        for name, matrix, width in zip("kv", matrices, (found.width, found.value_width), strict=True):
            if matrix is None:
                raise Unfit("keys or values that are no plain matrices")
            pointer, stride = matrix
            strided = f"[{found.keys}, {width}], [{stride}, 1], [{tile_n}, {width}]"
            self._draft.line(f"matrix_{name} = tl.make_tensor_descriptor({pointer}, {strided})")

    def matrices(self) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
        """Where keys and values begin and how far apart their rows are; None where they are no matrices."""
        key, found = Variable("key", self._found.keys), self._found
        self._depth, self._out = Variable("depth", found.width), Variable("out", found.value_width)
        deep = self._matrix(found.first.operands[1], self._key_place(key), key, self._depth)
        return deep, self._matrix(self._values(), self._value_place(key), key, self._out)

    def _matrix(self, value: int, place: Place, key: Variable, inner: Variable) -> tuple[str, int] | None:
        source = self._draft.source(value, place)
        if source is None or inner.extent != _padded(inner.extent):
            return None
        terms, shift = strides(source[1], self._found.meaning.inputs[source[0]].shape)
        whole = {digit.variable: step for digit, step in terms if digit.extent == digit.variable.extent}
        outer = [(digit, step) for digit, step in terms if digit.variable == self._batch]
        aligned = all(
            step % _ALIGNED == 0 for step in (whole.get(key, 1), shift, *(step for _, step in outer))
        )
        if whole.get(inner) != 1 or not aligned or len(terms) != len(outer) + 2:
            return None
        texts = [times(digit.text, step) for digit, step in outer]
        return " + ".join([f"input{source[0]}", *texts, str(shift)]), whole[key]

    def _values(self) -> int:
        return self._found.step.operands[2 if self._found.scores is None else 1]

    def _outer(self, shape: tuple[int, ...]) -> Place:
        """The batch's part of a place: the axes before the last two, or batch and heads of the operator."""
        if self._found.scores is None:
            batch, _, heads, _ = self._found.shape(self._found.step.operands[0])
            place = regrouped((self._batch.whole(),), (batch, heads))
        else:
            outer = self._found.first.result.shape[:-2]
            place = regrouped((self._batch.whole(),), outer)
        if place is None:
            raise Unfit("a batch that can't be taken apart")
        lowest = place[len(place) - len(shape) :] if shape else ()
        return tuple(
            Coordinate() if extent == 1 else each for each, extent in zip(lowest, shape, strict=True)
        )

    def _heads(self, value: int, row: Variable, column: Variable) -> Place:
        """A place of the operator's operands: batch, row, head, column; heads may be shared."""
        shape = self._found.shape(value)
        heads = self._found.shape(self._found.step.operands[0])[2]
        batch, head = self._outer((shape[0], heads))
        if shape[2] != heads:
            place = regrouped((head,), (shape[2], heads // shape[2]))
            if place is None:
                raise Unfit("heads that can't be grouped")
            head = place[0]
        return batch, row.whole(), head, column.whole()

    def _query_place(self, width: Variable) -> Place:
        value = self._found.first.operands[0]
        if self._found.scores is None:
            return self._heads(value, self._row, width)
        return (*self._outer(self._found.shape(value)[:-2]), self._row.whole(), width.whole())

    def _key_place(self, key: Variable) -> Place:
        value = self._found.first.operands[1]
        if self._found.scores is None:
            return self._heads(value, key, self._depth)
        return (*self._outer(self._found.shape(value)[:-2]), self._depth.whole(), key.whole())

    def _value_place(self, key: Variable) -> Place:
        value = self._values()
        if self._found.scores is None:
            return self._heads(value, key, self._out)
        return (*self._outer(self._found.shape(value)[:-2]), key.whole(), self._out.whole())

    def _score_place(self, key: Variable, shape: tuple[int, ...]) -> Place:
        outer = self._outer(shape[:-2])
        last = (self._row.whole(), key.whole())
        return (*outer, *(Coordinate() if n == 1 else each for n, each in zip(shape[-2:], last, strict=True)))

    def _result_place(self) -> Place:
        if self._found.scores is None:
            return self._heads(self._found.step.operands[0], self._row, self._out)
        return (*self._outer(self._found.step.result.shape[:-2]), self._row.whole(), self._out.whole())


def _program(meaning: Meaning, gpu: Gpu, configuration: Configuration) -> Program:
    found = attention_of(meaning, gpu)
    if found is None:
        raise Unfit("no attention")
    return _Writer(found, configuration).program()


ATTENTION = Template(name="attention", space=_space, refusal=_refusal, program=_program)
