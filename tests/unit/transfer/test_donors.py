"""Who gives, in which order, and what is learned from it."""

from support.samples.traces import tiled_donor, tiled_space
from tuneloom.transfer import Donor, anchor_of, fitted_seeds, lessons_for, nearest, shape_distance

SPACE = tiled_space("mine", 64, 55, inlined=2)


def test_a_similar_kernel_gives_its_inner_tiles_through_the_sketch_of_the_same_order() -> None:
    seeds, misfits = fitted_seeds(SPACE, [tiled_donor(7, "other", 1.0, [(4, 16), (7, 8)], reverse=True)], 8)
    assert seeds[0].seed.sketch == 1
    assert seeds[0].seed.decisions == ((4, 16), (5, 11))
    assert seeds[0].seed.origin == "transfer:7"
    assert [misfit.reason for misfit in misfits] == ["(8,) does not divide 55"]


def test_the_nearer_and_the_faster_donor_comes_first() -> None:
    near, far = tiled_donor(1, "near", 1.0, [(4, 16), (11, 5)]), tiled_donor(2, "far", 1.0, [(2, 2), (2, 2)])
    slow = tiled_donor(3, "near", 3.0, [(8, 8), (11, 5)])
    seeds, _ = fitted_seeds(SPACE, [far, slow, near], 2)
    assert [seed.donor.record for seed in seeds] == [1, 3]


def test_the_tasks_own_records_come_before_all_others() -> None:
    own = tiled_donor(1, "mine", 9.0, [(32, 2), (55, 1)])
    other = tiled_donor(2, "other", 0.1, [(4, 16), (11, 5)])
    seeds, _ = fitted_seeds(SPACE, [other, own], 8)
    assert [seed.donor.record for seed in seeds] == [1, 2]


def test_the_representative_is_preferred_among_equals() -> None:
    donors = [tiled_donor(1, "a", 1.0, [(4, 16), (11, 5)]), tiled_donor(2, "b", 1.0, [(8, 8), (11, 5)])]
    seeds, _ = fitted_seeds(SPACE, donors, 1, favourite="b")
    assert [seed.donor.record for seed in seeds] == [2]


def test_the_same_point_is_given_once() -> None:
    donors = [tiled_donor(n, f"task{n}", 1.0, [(4, 16), (11, 5)]) for n in range(5)]
    seeds, _ = fitted_seeds(SPACE, donors, 8)
    points = [(seed.seed.sketch, seed.seed.decisions) for seed in seeds]
    assert len(points) == len(set(points))


def test_an_own_schedule_of_a_foreign_form_is_given_as_a_whole() -> None:
    donor = tiled_donor(1, "mine", 1.0, [(64, 1)])
    (seed,), _ = fitted_seeds(SPACE, [donor], 8)
    assert (seed.seed.sketch, seed.seed.configuration) == (None, donor.trace)


def foreign(record: int, task: str, configuration: str, apart: float = 0.0) -> Donor:
    return Donor(
        record=record, task_key=task, kernel_class="matmul", gflop=1.0, seconds=1.0, device_key="h200",
        origin=f"transfer:{record}", trace=configuration, apart=apart,
    )  # fmt: skip


def test_configurations_of_other_implementers_are_given_as_they_are_the_nearest_shape_first() -> None:
    donors = [
        foreign(1, "far", 'triton:{"tile":16}', apart=6.0),
        foreign(2, "near", 'triton:{"tile":32}', apart=1.0),
        foreign(3, "mine", 'triton:{"tile":64}'),
    ]
    seeds, misfits = fitted_seeds(SPACE, donors, 8)
    assert [seed.donor.record for seed in seeds] == [3, 2, 1] and not misfits
    assert [seed.seed.configuration for seed in seeds] == [donors[n].trace for n in (2, 1, 0)]


def test_damaged_records_are_misfits_and_stop_nothing() -> None:
    good = tiled_donor(1, "other", 1.0, [(4, 16), (11, 5)])
    torn = Donor(
        record=2,
        task_key="other",
        kernel_class="conv2d",
        gflop=0.0,
        seconds=1.0,
        device_key="cpu",
        origin="transfer:2",
        trace=good.trace[:40],
    )
    seeds, misfits = fitted_seeds(SPACE, [torn, good], 8)
    assert [seed.donor.record for seed in seeds] == [1]
    assert "not a trace" in [misfit.reason for misfit in misfits]


def test_lessons_are_relative_to_the_best_of_their_own_task() -> None:
    donors = [
        tiled_donor(1, "other", 2.0, [(4, 16), (11, 5)]),
        tiled_donor(2, "other", 6.0, [(64, 1), (55, 1)]),
        tiled_donor(3, "alien", 1.0, [(64, 1)]),
    ]
    assert [(lesson.decisions, lesson.slowdown) for lesson in lessons_for(SPACE, donors)] == [
        (((4, 16), (11, 5)), 1.0),
        (((64, 1), (55, 1)), 3.0),
    ]


def test_what_is_fused_behind_the_anchor_does_not_change_it() -> None:
    assert anchor_of("conv2d_add_relu") == anchor_of("conv2d_add_add_relu") == anchor_of("conv2d") == "conv2d"
    assert anchor_of("global_avg_pool2d") == "global_avg_pool2d"
    assert anchor_of("add_relu") == "add"


def test_shapes_are_near_by_doublings() -> None:
    here = "1×64×56×56, 64×64×3×3 → 1×64×56×56"
    assert shape_distance(here, here) == 0.0
    others = {"half": here.replace("56", "28"), "same": here, "dense": "1×512, 512×1000 → 1×1000"}
    assert nearest(here, others.items(), 2) == ["same", "half"]
    assert shape_distance("", here) > 0 and shape_distance("gibberish", here) > 0
