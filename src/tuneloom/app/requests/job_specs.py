"""Jobs from flat values, wherever those come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.app.kinds.base import JobKind
from tuneloom.app.requests.schema import fields_for, job_fields, kinds_of, require_fields
from tuneloom.app.requests.sources import device_for, kind_of
from tuneloom.errors import InputError
from tuneloom.model import Budget, JobField, JobSpec, MeasuringRules
from tuneloom.model.fields import EXTRA
from tuneloom.model.sizes import Ranges, range_in, range_of

ShapeSet = dict[str, tuple[int, ...]]


def shape_sets(given: Mapping[str, Any]) -> list[ShapeSet]:
    """One set of shapes for each variant of the model: the nth of every input belong together.

    An input has a shape (a list of sizes) or a list of shapes; one with a single shape has it in all
    sets. Where a size is a range, such as `1..64`, there are two sets: its greatest and its least sizes.
    Raises InputError for shapes of an input that differ in rank, inputs with different numbers of shapes, and
    sets that are the same.
    """
    ranges = ranges_in(given)
    listed = {
        name: [tuple(map(max, ranges[name])), tuple(map(min, ranges[name]))]
        if name in ranges
        else _listed(name, value)
        for name, value in given.items()
    }
    counts = {name: len(shapes) for name, shapes in listed.items() if len(shapes) > 1}
    count = max(counts.values(), default=1)
    for name, own in counts.items():
        if own != count:
            most = next(other for other, number in counts.items() if number == count)
            raise InputError(
                f"input {name!r} has {own} shapes and {most!r} has {count}; give as many for each, or one",
                field="shapes",
            )
    sets = [{name: shapes[min(n, len(shapes) - 1)] for name, shapes in listed.items()} for n in range(count)]
    for n, one in enumerate(sets):
        if one in sets[:n]:
            raise InputError(f"the same shapes are given twice: {_shown(one)}; omit one", field="shapes")
    return sets


def ranges_in(given: Mapping[str, Any]) -> Ranges:
    """The inputs of which a size is a range, with the least and greatest of all their sizes."""
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for name, value in given.items():
        for shape in _shapes(value):
            if any(isinstance(size, str) for size in shape):
                found[name] = tuple(range_in(size) or (size, size) for size in shape)
    if found and any(len(_shapes(value)) > 1 for value in given.values()):
        raise InputError("a range of sizes can't be combined with several shapes; omit one", field="shapes")
    if found:
        range_of(found)
    return found


def _shapes(value: Sequence[Any]) -> Sequence[Any]:
    """All shapes of an input, which may have one or a list of them."""
    return [value] if value and isinstance(value[0], int | str) else value


def _listed(name: str, value: Sequence[Any]) -> list[tuple[int, ...]]:
    shapes = [tuple(shape) for shape in _shapes(value)]
    if len({len(shape) for shape in shapes}) > 1:
        raise InputError(
            f"the shapes of input {name!r} differ in rank ({_texts(shapes)}); give all of them one rank",
            field="shapes",
        )
    return shapes


def _texts(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)


def _shown(shapes: ShapeSet) -> str:
    return ", ".join(f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items())


def job_spec(values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> JobSpec:
    """A job from flat values under the names that files use; None counts as not given.

    `defaults` hold for jobs of several kinds: what does not apply to this one's is left out. Raises
    InputError with the field for a value that makes no sense.
    """
    own = {field: value for field, value in values.items() if value is not None}
    given = {field: value for field, value in (defaults or {}).items() if value is not None} | own
    require_fields(given, kinds_of(job_fields()))
    kind = kind_of(given["model"], given.get("tuner"))
    known = fields_for(kind.name, kind.fields)
    _require_meant(own, known, kind)
    parts = _parts({name: value for name, value in given.items() if name in known}, known)
    ranges = ranges_in(given.get("shapes", {}))
    shapes, *more = shape_sets(given.get("shapes", {}))
    told = {"device_key": device_for(given.get("target", "cpu")), **parts[""]}
    if told.get("self_contained"):
        told["only_tvm"] = True  # another runtime is a library as well
    spec = JobSpec(
        **{**told, "tuner": kind.name, "shapes": shapes, "more_shapes": tuple(more), "ranges": ranges},
        budget=Budget(**parts["budget"]),
        measuring=MeasuringRules(**parts["measuring"]),
        extra=parts[EXTRA],
    )
    _require_comparable(spec, kind)
    return kind.filled_in(spec, given)


def _parts(values: Mapping[str, Any], known: Mapping[str, JobField]) -> dict[str, dict[str, Any]]:
    """The values by the part of a job that holds them; what a kind brings has its defaults."""
    parts: dict[str, dict[str, Any]] = {"": {}, "budget": {}, "measuring": {}, EXTRA: {}}
    for name, field in known.items():
        if name in values:
            parts[field.part][field.attribute] = values[name]
        elif field.part == EXTRA and field.default is not None:
            parts[EXTRA][name] = field.default
    return parts


def _require_meant(values: Mapping[str, Any], known: Mapping[str, JobField], kind: JobKind) -> None:
    for field in job_fields():
        if field.name in values and field.name not in known:
            words = f"{field.name!r} is for {' and '.join(field.kinds)} jobs, and this is a {kind.name} job"
            raise InputError(f"{words}; omit it", field=field.name)


def _require_comparable(spec: JobSpec, kind: JobKind) -> None:
    if spec.budget.goal_ratio is not None and not kind.comparable(spec):
        raise InputError(
            f"{spec.name}: 'goal_ratio' needs an ONNX model on the CPU, which ONNX Runtime can run as well; "
            "give 'goal_ms' instead",
            field="goal_ratio",
        )
