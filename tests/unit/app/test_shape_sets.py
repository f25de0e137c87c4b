"""Several shapes for one model: which belong together, and what is refused."""

import pytest

from tuneloom.app.requests.job_specs import job_spec, shape_sets
from tuneloom.cli.job_options import shapes_of
from tuneloom.errors import InputError
from tuneloom.model import JobSpec, ModelRecipe


def test_no_shapes_are_one_set_of_none() -> None:
    assert shape_sets({}) == [{}]


def test_the_nth_shapes_of_all_inputs_belong_together() -> None:
    sets = shape_sets({"x": [(1, 3), (8, 3)], "y": [[1, 5], [8, 5]], "z": (7,)})
    assert sets == [{"x": (1, 3), "y": (1, 5), "z": (7,)}, {"x": (8, 3), "y": (8, 5), "z": (7,)}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"x": [(1, 3), (8, 3, 3)]}, r"input 'x' differ in rank \(1×3, 8×3×3\)"),
        ({"x": [(1,), (2,), (3,)], "y": [(1,), (2,)]}, "input 'y' has 2 shapes and 'x' has 3"),
        ({"x": [(1, 3), (1, 3)]}, "the same shapes are given twice: x=1,3"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        shape_sets(given)


def test_a_command_line_may_repeat_an_input_or_list_alternatives() -> None:
    assert shapes_of(["x=1,3", "x=8,3"]) == shapes_of(["x=1|8,3"]) == {"x": [(1, 3), (8, 3)]}
    assert shapes_of(["x=1|8,3,32|64"]) == {"x": [(1, 3, 32), (8, 3, 64)]}


@pytest.mark.parametrize("text", ["x", "x=", "x=1|2,3|4|5", "x=1|,3", "x=0|1,3", "=1,3x"])
def test_a_shape_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(InputError, match=r"can't read --shape .*name=1,3,224,224"):
        shapes_of([text])


def test_a_job_with_several_shapes_survives_the_store() -> None:
    values = {"name": "net", "model": "zoo:resnet18", "shapes": {"x": [[1, 3], [8, 3]]}, "pad": True}
    spec = job_spec(values)
    assert (spec.shapes, spec.more_shapes, spec.pad) == ({"x": (1, 3)}, ({"x": (8, 3)},), True)
    assert JobSpec.from_json(spec.to_json()) == spec


def test_a_job_of_an_older_store_has_one_set_of_shapes() -> None:
    data = job_spec({"name": "net", "model": "zoo:resnet18"}).to_json()
    del data["more_shapes"], data["pad"]
    assert JobSpec.from_json(data).more_shapes == ()


def test_every_variant_of_a_recipe_has_a_key_of_its_own() -> None:
    recipe = ModelRecipe(key="j", source="m", shapes={"x": (1,)}, target="cpu", more_shapes=({"x": (8,)},))
    found = [(one.key, one.shapes, one.more_shapes) for one in recipe.variants()]
    assert found == [("j", {"x": (1,)}, ()), ("j#1", {"x": (8,)}, ())]


def test_a_range_of_sizes_is_its_greatest_and_its_least_shape() -> None:
    spec = job_spec({"name": "net", "model": "zoo:resnet18", "shapes": shapes_of(["x=1..64,3", "y=5"])})
    assert (spec.shapes, spec.more_shapes) == ({"x": (64, 3), "y": (5,)}, ({"x": (1, 3), "y": (5,)},))
    assert spec.ranges == {"x": ((1, 64), (3, 3))}
    assert JobSpec.from_json(spec.to_json()) == spec


def test_a_recipe_has_a_set_of_shapes_for_each_size_that_is_chosen() -> None:
    spec = job_spec({"name": "net", "model": "zoo:resnet18", "shapes": {"x": ["1..64", 3], "y": [5]}})
    recipe = ModelRecipe.of("j", spec).at([64, 8])
    assert [one.shapes for one in recipe.variants()] == [{"x": (64, 3), "y": (5,)}, {"x": (8, 3), "y": (5,)}]
    assert not recipe.ranges


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["x=1..8,1..512"], r"only one dimension may vary, got 1\.\.8 and 1\.\.512"),
        (["x=1..8,3", "y=1|2"], "a range of sizes can't be combined with several shapes"),
        (["x=1..8,3", "x=9,3"], "a range of sizes can't be combined with several shapes"),
        (["x=1..9000"], r"1\.\.9000 has 9000 sizes; a range may have 8192"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        job_spec({"name": "net", "model": "zoo:resnet18", "shapes": shapes_of(texts)})


@pytest.mark.parametrize("text", ["x=8..1,3", "x=0..8,3", "x=1..,3", "x=1..8..9,3", "x=4..4,3"])
def test_a_range_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(InputError, match=r"can't read --shape .*name=1\.\.64,3,224,224"):
        shapes_of([text])
