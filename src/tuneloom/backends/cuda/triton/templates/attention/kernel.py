"""The text of an attention kernel."""

from dataclasses import replace
from math import ceil

from tuneloom.backends.cuda.triton.claims import Configuration, Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable
from tuneloom.backends.cuda.triton.expressions import TYPES
from tuneloom.backends.cuda.triton.programs import KernelText, TritonProgram
from tuneloom.backends.cuda.triton.templates.attention.finding import Attention, padded
from tuneloom.backends.cuda.triton.templates.attention.places import Places, batch_of, matrices
from tuneloom.backends.cuda.triton.templates.tiles import dot, tiled
from tuneloom.backends.cuda.triton.writing import Draft, constant_of
from tuneloom.backends.meaning import TensorType

_LOG2_E = 1.4426950408889634


class AttentionKernel:
    """Writes one attention kernel."""

    def __init__(self, found: Attention, configuration: Configuration) -> None:
        self._found, self._knobs = found, configuration
        self._split = configuration.get("split", 1)
        self._draft = Draft(found.meaning, scratch=("float32",) * 3 if self._split > 1 else ())
        self._batch = batch_of(found)

    def program(self) -> TritonProgram:
        """All of the kernel, or two where blocks share the keys of a row."""
        found, draft, tile_m = self._found, self._draft, self._knobs["tile_m"]
        draft.line("z = tl.program_id(1)")
        self._row = tiled(draft, "i", found.queries, tile_m, f"tl.program_id(0) * {tile_m}", "[:, None]")
        width = tiled(draft, "dq", found.width, padded(found.width), "0", "[None, :]")
        depth = tiled(draft, "dk", found.width, padded(found.width), "0", "[:, None]")
        self._out = tiled(draft, "c", found.value_width, padded(found.value_width), "0", "[None, :]")
        self._places = Places(found, self._batch, self._row, depth, self._out)
        draft.line(f"q = {draft.raw(found.first.operands[0], self._places.query(width))}")
        if self._knobs["descriptors"]:
            self._describe()
        # One number a row: a thread would compute a column of them once for each column it has of a tile.
        draft.line(f"peak = tl.full(({tile_m},), float('-inf'), tl.float32)")
        draft.line(f"total = tl.zeros(({tile_m},), tl.float32)")
        draft.line(f"sums = tl.zeros(({tile_m}, {padded(found.value_width)}), tl.float32)")
        self._loops()
        if self._split > 1:
            self._keep_parts()
            return TritonProgram(kernels=(self._text(), self._put_together()), scratch=self._parts)
        self._finish("total[:, None]")
        return TritonProgram(kernels=(self._text(),))

    def _text(self) -> KernelText:
        grid = (ceil(self._found.queries / self._knobs["tile_m"]), self._found.batch, self._split)
        warps, stages = self._knobs["warps"], self._knobs["stages"]
        return self._draft.text("attention", grid, warps=warps, stages=stages)

    def _finish(self, total: str) -> None:
        """Divide by the weights; rows that see no key are zeros."""
        whole = total
        if self._may_hide:
            whole = self._draft.named(f"tl.where({total} == 0.0, 1.0, {total})")
        self._draft.know(self._found.result, self._places.result(), self._draft.named(f"sums / {whole}"))
        self._draft.finish()

    @property
    def _may_hide(self) -> bool:
        """Whether a row may see no key at all."""
        found = self._found
        return len(found.step.operands) > 3 or found.scores is not None or found.causal is not None

    @property
    def _parts(self) -> tuple[TensorType, TensorType, TensorType]:
        """What blocks that share a row leave: sums, the highest scores, totals."""
        rows = (self._split, self._found.batch, self._found.queries)
        single = TensorType(shape=rows, dtype="float32")
        return TensorType(shape=(*rows, self._found.value_width), dtype="float32"), single, single

    def _part_place(self, part: Coordinate) -> Place:
        return part, self._batch.whole(), self._row.whole()

    def _keep_parts(self) -> None:
        part = Variable("tl.program_id(2)", self._split).whole()
        sums, single, _ = self._parts
        self._draft.write("scratch0", sums, (*self._part_place(part), self._out.whole()), "sums")
        for number, text in ((1, "peak[:, None]"), (2, "total[:, None]")):
            self._draft.write(f"scratch{number}", single, self._part_place(part), text)

    def _put_together(self) -> KernelText:
        """The kernel that joins the parts of each row, weighed by how high their scores were."""
        found, (sums, single, _) = self._found, self._parts
        draft = self._draft = Draft(found.meaning, scratch=("float32",) * 3)
        draft.line("z = tl.program_id(1)")
        tile_m = self._knobs["tile_m"] if found.queries > 1 else 1
        self._row = tiled(draft, "i", found.queries, tile_m, f"tl.program_id(0) * {tile_m}", "[:, None]")
        self._out = tiled(draft, "c", found.value_width, padded(found.value_width), "0", "[None, :]")
        self._places = replace(self._places, row=self._row, out=self._out)
        places = [self._part_place(Coordinate(shift=part)) for part in range(self._split)]
        peaks = [draft.load("scratch1", single, place, "float('-inf')") for place in places]
        draft.line(f"high = {peaks[0]}")
        for peak in peaks[1:]:
            draft.line(f"high = tl.maximum(high, {peak})")
        draft.line("base = tl.where(high == float('-inf'), 0.0, high)")
        draft.line("total = tl.zeros_like(high)")
        draft.line(f"sums = tl.zeros(({tile_m}, {padded(found.value_width)}), tl.float32)")
        for peak, place in zip(peaks, places, strict=True):
            weight = draft.named(f"tl.exp2(({peak} - base) * {self._scale!r})")
            draft.line(f"total += {weight} * {draft.load('scratch2', single, place)}")
            draft.line(f"sums += {weight} * {draft.load('scratch0', sums, (*place, self._out.whole()))}")
        self._finish("total")
        return draft.text("together", (ceil(found.queries / tile_m), found.batch, 1), warps=4)

    def _loops(self) -> None:
        """Keys that all rows of the tile see first, then those that a causal mask cuts."""
        keys, tile_n, tile_m = self._found.keys, self._knobs["tile_n"], self._knobs["tile_m"]
        causal = self._found.causal
        if self._split > 1:
            each = ceil(ceil(keys / tile_n) / self._split) * tile_n
            start = self._draft.named(f"tl.program_id(2) * {each}")
            end = self._draft.named(f"tl.minimum({start} + {each}, {keys})")
            self._loop(start, end, bool(keys % tile_n), None)
            return
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
            keys = draft.raw(found.first.operands[1], self._places.key(key))
        scores = draft.named(dot("q", keys, f"tl.zeros({tile}, tl.float32)", found.dtype, precision))
        scores = self._scores(scores, key)
        valid = [each for each in (key.mask, f"(j <= i + {causal})" if causal is not None else "") if each]
        if valid:
            scores = draft.named(f"tl.where({' & '.join(valid)}, {scores}, float('-inf'))")
        draft.line(f"high = tl.maximum(peak, tl.max({scores}, axis=1))")
        if self._changed or causal is not None:
            draft.line("base = tl.where(high == float('-inf'), 0.0, high)")
        else:
            draft.line("base = high")
        weights = draft.named(f"tl.exp2({self._exponents(scores)})")
        draft.line(f"fade = tl.exp2((peak - base) * {self._scale!r})")
        draft.line(f"total = total * fade + tl.sum({weights}, axis=1)")
        draft.line("sums = sums * fade[:, None]")
        if described:
            values = draft.named("matrix_v.load([begin, 0])")
        else:
            values = draft.raw(found.values, self._places.value(other))
        cast = f"{weights}.to({TYPES[found.dtype]})"
        draft.line(f"sums = {dot(cast, values, 'sums', found.dtype, precision)}")
        draft.line("peak = high")

    def _exponents(self, scores: str) -> str:
        """What the weights are 2 to the power of.

        One instruction multiplies and subtracts without rounding between, so that a score that is its row's
        highest would be off by the rounding of `shift`: nothing for scores that are products, but a number
        without bounds for those that a mask hides by a large one.
        """
        if self._changed:
            return f"({scores} - base[:, None]) * {self._scale!r}"
        self._draft.line(f"shift = base * {self._scale!r}")
        return f"{scores} * {self._scale!r} - shift[:, None]"

    def _scores(self, scores: str, key: Variable) -> str:
        """The scores before softmax, but for what is left to multiply them by."""
        found, draft = self._found, self._draft
        if not self._changed:
            return scores
        if found.scores is None:
            bias = found.step.operands[3]
            read = draft.read(bias, self._places.scores(key, found.shape(bias)))
            return draft.named(f"{scores} * {self._operator_scale!r} + {read}")
        step = found.meaning.step_of(found.weights or 0)
        assert step is not None
        place = self._places.scores(key, found.shape(found.scores))
        draft.know(found.scores, place, scores)
        text = draft.named(draft.read(step.operands[0], place))
        draft.forget(found.scores)
        return text

    @property
    def _changed(self) -> bool:
        """Whether more is done to scores than to multiply them, so that they may be -inf."""
        if self._found.scores is None:
            return len(self._found.step.operands) > 3
        return self._factor() is None

    @property
    def _scale(self) -> float:
        """What is left to multiply the scores by, for powers of 2."""
        if self._changed:
            return _LOG2_E
        return (self._operator_scale if self._found.scores is None else self._factor() or 1.0) * _LOG2_E

    @property
    def _operator_scale(self) -> float:
        """What attention that is one operator multiplies products by."""
        return float(self._found.step.attributes.get("scale") or self._found.width**-0.5)

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
        widths = found.width, found.value_width
        for name, matrix, width in zip("kv", matrices(found), widths, strict=True):
            if matrix is None:
                raise Unfit("keys or values that are no plain matrices")
            pointer, stride = matrix
            strided = f"[{found.keys}, {width}], [{stride}, 1], [{tile_n}, {width}]"
            self._draft.line(f"matrix_{name} = tl.make_tensor_descriptor({pointer}, {strided})")
