"""Where attention's tensors are, by the variables of its kernel."""

from dataclasses import dataclass

from tuneloom.backends.cuda.triton.claims import Unfit
from tuneloom.backends.cuda.triton.coordinates import Coordinate, Place, Variable, regrouped, strides, times
from tuneloom.backends.cuda.triton.templates.attention.finding import Attention, padded
from tuneloom.backends.cuda.triton.writing import Draft

_ALIGNED = 16
Matrix = tuple[str, int]
"""Where a matrix begins, and how far apart its rows are."""


@dataclass(frozen=True, slots=True)
class Places:
    """The elements that a block reads and writes."""

    found: Attention
    batch: Variable
    row: Variable
    depth: Variable
    out: Variable

    def query(self, width: Variable) -> Place:
        value = self.found.first.operands[0]
        if self.found.scores is None:
            return self._heads(value, self.row, width)
        return (*self._outer(self.found.shape(value)[:-2]), self.row.whole(), width.whole())

    def key(self, key: Variable) -> Place:
        value = self.found.first.operands[1]
        if self.found.scores is None:
            return self._heads(value, key, self.depth)
        return (*self._outer(self.found.shape(value)[:-2]), self.depth.whole(), key.whole())

    def value(self, key: Variable) -> Place:
        value = self.found.values
        if self.found.scores is None:
            return self._heads(value, key, self.out)
        return (*self._outer(self.found.shape(value)[:-2]), key.whole(), self.out.whole())

    def scores(self, key: Variable, shape: tuple[int, ...]) -> Place:
        """Of scores and of what is added to them, whose axes may be of one element."""
        outer = self._outer(shape[:-2])
        last = (self.row.whole(), key.whole())
        return (*outer, *(Coordinate() if n == 1 else each for n, each in zip(shape[-2:], last, strict=True)))

    def result(self) -> Place:
        if self.found.scores is None:
            return self._heads(self.found.step.operands[0], self.row, self.out)
        return (*self._outer(self.found.step.result.shape[:-2]), self.row.whole(), self.out.whole())

    def _outer(self, shape: tuple[int, ...]) -> Place:
        """The batch's part of a place: the axes before the last two, or batch and heads of the operator."""
        if self.found.scores is None:
            batch, _, heads, _ = self.found.shape(self.found.step.operands[0])
            place = regrouped((self.batch.whole(),), (batch, heads))
        else:
            outer = self.found.first.result.shape[:-2]
            place = regrouped((self.batch.whole(),), outer)
        if place is None:
            raise Unfit("a batch that can't be taken apart")
        lowest = place[len(place) - len(shape) :] if shape else ()
        return tuple(
            Coordinate() if extent == 1 else each for each, extent in zip(lowest, shape, strict=True)
        )

    def _heads(self, value: int, row: Variable, column: Variable) -> Place:
        """A place of the operator's operands: batch, row, head, column; heads may be shared."""
        shape = self.found.shape(value)
        heads = self.found.shape(self.found.step.operands[0])[2]
        batch, head = self._outer((shape[0], heads))
        if shape[2] != heads:
            place = regrouped((head,), (shape[2], heads // shape[2]))
            if place is None:
                raise Unfit("heads that can't be grouped")
            head = place[0]
        return batch, row.whole(), head, column.whole()


def batch_of(found: Attention) -> Variable:
    """What counts heads, and batches of them."""
    return Variable("z", found.batch)


def matrices(found: Attention) -> tuple[Matrix | None, Matrix | None]:
    """The keys and the values of one head as matrices in memory; None where they are none."""
    draft, batch = Draft(found.meaning), batch_of(found)
    key, row = Variable("key", found.keys), Variable("row", found.queries)
    depth, out = Variable("depth", found.width), Variable("out", found.value_width)
    places = Places(found, batch, row, depth, out)
    keys = draft.source(found.first.operands[1], places.key(key))
    values = draft.source(found.values, places.value(key))
    return _matrix(found, keys, batch, key, depth), _matrix(found, values, batch, key, out)


def _matrix(
    found: Attention, source: tuple[int, Place] | None, batch: Variable, key: Variable, inner: Variable
) -> Matrix | None:
    if source is None or inner.extent != padded(inner.extent):
        return None
    terms, shift = strides(source[1], found.meaning.inputs[source[0]].shape)
    whole = {digit.variable: step for digit, step in terms if digit.extent == digit.variable.extent}
    outer = [(digit, step) for digit, step in terms if digit.variable == batch]
    aligned = all(step % _ALIGNED == 0 for step in (whole.get(key, 1), shift, *(step for _, step in outer)))
    if whole.get(inner) != 1 or not aligned or len(terms) != len(outer) + 2:
        return None
    texts = [times(digit.text, step) for digit, step in outer]
    return " + ".join([f"input{source[0]}", *texts, str(shift)]), whole[key]
