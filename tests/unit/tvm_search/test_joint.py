"""Several implementers of one kernel: first everybody's guesses, then trials where the gain is expected."""

from collections.abc import Sequence
from typing import Any

from tuneloom.backends.implementers import Configuration, Knobs
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, SearchOptions, Seed, Task, Trial
from tuneloom.model.space import TVM, configured, implementer_of, values_in
from tuneloom.tuners.tvm.search.claimed import ClaimSearch
from tuneloom.tuners.tvm.search.joint import JointSearch

OPTIONS = SearchOptions(seed=1, trials=64, batch=8)
DEFAULT = Candidate(key="default", configuration="[[],[]]", origin="default")
TASK = Task(key="one", name="product", payload=b"kernel")


class Tiles:
    """A claim with two knobs, of which large products are refused."""

    space = Knobs(
        knobs={"rows": (1, 2, 4, 8), "columns": tuple(range(1, 9))}, guesses=({"rows": 4, "columns": 4},)
    )

    def refusal(self, configuration: Configuration) -> str:
        return "too large" if configuration["rows"] * configuration["columns"] > 32 else ""


class Traces:
    """Stands for the search of TVM's schedules."""

    def __init__(self) -> None:
        self.asked = 0
        self.planted = 0
        self.seeds: list[Seed] = []

    def skip_default(self) -> None: ...

    def select(self, count: int) -> list[Candidate]:
        self.asked += count
        first = self.asked - count
        return [Candidate(key=f"t{n}", configuration=f"[[{n}],[]]") for n in range(first, self.asked)]

    def plant(self, seeds: Sequence[Seed]) -> None:
        self.seeds += seeds

    def update(self, trials: Sequence[Trial]) -> None: ...


def joint(guesses_first: bool = False, **claims: Any) -> tuple[JointSearch, Traces]:
    own = Traces()
    members = [ClaimSearch(name, claim, TASK, OPTIONS) for name, claim in claims.items()]
    search = JointSearch(lambda: own, members, DEFAULT, guesses_first=guesses_first)  # type: ignore[arg-type, return-value]
    return search, own


def timed(candidate: Candidate, seconds: float | None) -> Trial:
    failed = Failure(kind=FailureKind.RUN_ERROR)
    return Trial(candidate=candidate, outcome=failed if seconds is None else Measurement(seconds=(seconds,)))


def makers(candidates: Sequence[Candidate]) -> list[str]:
    return [implementer_of(one.configuration) for one in candidates]


def test_the_default_comes_first_and_then_the_guess_of_every_implementer() -> None:
    search, _ = joint(fast=Tiles(), slow=Tiles())
    first = search.select(3)
    assert makers(first) == [TVM, "fast", "slow"]
    assert first[1].configuration == configured("fast", {"rows": 4, "columns": 4})
    assert first[1].payload == TASK.payload


class Listed(Tiles):
    """A claim with five guesses."""

    space = Knobs(
        knobs=Tiles.space.knobs, guesses=tuple({"rows": 2, "columns": column} for column in range(1, 6))
    )


def test_implementers_guess_in_turn_and_the_default_waits_where_guesses_are_good() -> None:
    search, _ = joint(guesses_first=True, fast=Listed(), slow=Listed())
    assert makers(search.select(3)) == ["fast", "slow", "fast"]
    assert makers(search.select(6)) == ["fast", "slow", "fast", "slow", "slow", TVM]


def test_a_seed_is_followed_by_the_first_guesses_and_then_by_other_seeds() -> None:
    search, _ = joint(guesses_first=True, fast=Listed(), slow=Listed())
    given = [configured("fast", {"rows": 8, "columns": column}) for column in (2, 3)]
    search.plant([Seed(origin="transfer:7", configuration=each) for each in given])
    first = search.select(4)
    assert makers(first) == ["fast", "fast", "slow", "fast"]
    assert [one.origin for one in first] == ["transfer:7", "guess", "guess", "transfer:7"]
    assert [first[0].configuration, first[3].configuration] == given


def test_where_claims_stand_alone_schedules_of_tvm_are_never_asked_for() -> None:
    own = Traces()
    member = ClaimSearch("fast", Tiles(), TASK, OPTIONS)
    search = JointSearch(lambda: own, [member], DEFAULT, alone=True)  # type: ignore[arg-type, return-value]
    search.plant([Seed(configuration="[[7],[]]", origin="donor")])
    first = search.select(4)
    search.update([timed(first[0], 1e-6), *(timed(one, 1.0) for one in first[1:])])
    every = [*first, *search.select(100)]
    assert makers(every) == [TVM, *["fast"] * 28] and own.asked == 0
    assert search.select(4) == []


def test_refused_configurations_are_never_proposed_and_none_comes_twice() -> None:
    search = ClaimSearch("fast", Tiles(), TASK, OPTIONS)
    every = search.select(100)
    assert len({one.key for one in every}) == len(every) == 28
    assert all(not Tiles().refusal(values_in(one.configuration)) for one in every)


def test_whoever_is_far_behind_gets_no_more_trials() -> None:
    search, _ = joint(fast=Tiles(), slow=Tiles())
    for _ in range(3):
        chosen = search.select(8)
        speed = {TVM: 9e-3, "fast": 1e-3, "slow": 5e-3}
        search.update([timed(one, speed[implementer_of(one.configuration)]) for one in chosen])
    assert set(makers(search.select(4))) == {"fast"}


def test_failures_do_not_count_as_fast() -> None:
    search, _ = joint(fast=Tiles())
    for _ in range(4):
        chosen = search.select(6)
        search.update(
            [timed(one, None if implementer_of(one.configuration) == "fast" else 1e-3) for one in chosen]
        )
    assert set(makers(search.select(4))) == {TVM}


def test_seeds_go_to_whom_they_belong_and_come_first() -> None:
    search, own = joint(fast=Tiles())
    seed = Seed(origin="transfer:7", configuration=configured("fast", {"rows": 8, "columns": 2}))
    search.plant([seed, Seed(origin="transfer:8", configuration="[[],[]]")])
    _, first = search.select(2)
    assert (first.configuration, first.origin) == (seed.configuration, "transfer:7")
    search.select(1)
    assert [one.origin for one in own.seeds] == ["transfer:8"]


def test_a_seed_of_another_kernel_is_fitted_to_the_nearest_allowed_values() -> None:
    search = ClaimSearch("fast", Tiles(), TASK, OPTIONS)
    search.plant([Seed(origin="x", configuration=configured("fast", {"rows": 64, "columns": 30}))])
    values = values_in(search.select(1)[0].configuration)
    assert values == {"rows": 4, "columns": 8}


def test_what_was_best_before_is_tried_as_it_is_in_a_space_too_large_to_list() -> None:
    class Large(Tiles):
        space = Knobs(knobs={f"k{n}": tuple(range(9)) for n in range(6)}, guesses=())

        def refusal(self, configuration: Configuration) -> str:
            return ""

    for n in range(2):
        best = configured("fast", {f"k{k}": (n * 5 + k * 3) % 9 for k in range(6)})
        search = ClaimSearch("fast", Large(), TASK, OPTIONS)
        search.plant([Seed(origin="x", configuration=best)])
        assert search.select(1)[0].configuration == best


def test_known_trials_are_not_proposed_again() -> None:
    known = ClaimSearch("fast", Tiles(), TASK, OPTIONS).select(5)
    search = ClaimSearch("fast", Tiles(), TASK, OPTIONS)
    search.update([timed(one, 1e-3) for one in known])
    assert not {one.key for one in search.select(100)} & {one.key for one in known}
