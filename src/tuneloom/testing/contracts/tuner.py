"""What every tuner fulfils, as tests that authors of tuners inherit.

class TestMyTuner(TunerContract):
    def tuner(self) -> Tuner: ...
    def task(self) -> Task: ...
"""

import pickle

from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    FailureKind,
    Measurement,
    MeasuringRules,
    Outcome,
    SearchOptions,
    Task,
    Trial,
    Tuner,
)

_MOST_BATCHES = 4


class TunerContract:
    """Inherit, and say which tuner and which task; keep the task small."""

    batch = 4
    rules = MeasuringRules(repeats=2, min_repeat_ms=1.0)

    def tuner(self) -> Tuner:
        """The tuner to look at."""
        raise NotImplementedError

    def task(self) -> Task:
        """A task it can tune."""
        raise NotImplementedError

    def test_it_has_a_name(self) -> None:
        assert self.tuner().name

    def test_no_batch_is_larger_than_asked_for(self) -> None:
        search = self.tuner().open(self.task(), self._options(), [])
        assert 1 <= len(search.select(self.batch)) <= self.batch

    def test_the_first_candidate_is_the_default(self) -> None:
        first = self.tuner().open(self.task(), self._options(), []).select(self.batch)[0]
        assert first.origin == "default"

    def test_no_candidate_is_proposed_twice(self) -> None:
        keys = [candidate.key for candidate in self._proposed(())]
        assert len(keys) == len(set(keys))

    def test_known_trials_are_not_proposed_again(self) -> None:
        first = self.tuner().open(self.task(), self._options(), []).select(self.batch)
        known = [self._trial(candidate) for candidate in first]
        again = {candidate.key for candidate in self._proposed(known)}
        assert not again & {candidate.key for candidate in first}

    def test_the_same_seed_and_history_give_the_same_candidates(self) -> None:
        one, other = self._proposed(()), self._proposed(())
        assert [c.key for c in one] == [c.key for c in other]

    def test_candidates_travel_between_processes(self) -> None:
        for candidate in self._first_batch():
            assert pickle.loads(pickle.dumps(candidate)) == candidate
            assert candidate.key and isinstance(candidate.configuration, str)

    def test_the_default_is_built_and_measured(self) -> None:
        first = self.tuner().open(self.task(), self._options(), []).select(1)[0]
        outcome = self._outcome(first)
        assert isinstance(outcome, Measurement), outcome

    def test_every_candidate_ends_in_a_measurement_or_a_failure_with_a_kind(self) -> None:
        for candidate in self._first_batch():
            assert isinstance(self._outcome(candidate), (Measurement, Failure))

    def test_failures_of_every_kind_can_be_learned_from(self) -> None:
        search = self.tuner().open(self.task(), self._options(), [])
        batch = search.select(len(FailureKind))
        kinds = list(FailureKind)[: len(batch)]
        search.update(
            [
                Trial(candidate=c, outcome=Failure(kind=kind, message="on purpose"))
                for c, kind in zip(batch, kinds, strict=True)
            ]
        )
        assert len(search.select(self.batch)) <= self.batch

    def _first_batch(self) -> list[Candidate]:
        batch = list(self.tuner().open(self.task(), self._options(), []).select(self.batch))
        assert batch
        return batch

    def _options(self) -> SearchOptions:
        return SearchOptions(seed=1, trials=100, batch=self.batch)

    def _proposed(self, known: "tuple[()] | list[Trial]") -> list[Candidate]:
        """Candidates of some batches, each told its trials before the next is selected."""
        search = self.tuner().open(self.task(), self._options(), list(known))
        found: list[Candidate] = []
        for _ in range(_MOST_BATCHES):
            batch = search.select(self.batch)
            found += batch
            search.update([_invented(candidate) for candidate in batch])
        return found

    def _trial(self, candidate: Candidate) -> Trial:
        return Trial(candidate=candidate, outcome=self._outcome(candidate))

    def _outcome(self, candidate: Candidate) -> Outcome:
        tuner, task = self.tuner(), self.task()
        built = tuner.build(task, candidate, self.rules)
        assert isinstance(built, (Artifact, Failure))
        return built if isinstance(built, Failure) else tuner.profile(task, built, self.rules, None)


def _invented(candidate: Candidate) -> Trial:
    """A measurement that depends on nothing but the candidate, so that searches can be repeated."""
    seconds = 1e-3 * (1 + sum(candidate.key.encode()) % 7)
    return Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,)))
