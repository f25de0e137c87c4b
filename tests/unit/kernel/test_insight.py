"""Reports can say which pair of knobs tells valid from failed."""

import json

from tuneloom.kernel import Space
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Trial
from tuneloom.tuners.kernel.search.insight import pair_tables

SPACE = Space({"a": [1, 2, 4], "b": [1, 2, 4], "idle": [0, 1], "fixed": [7]})


def trial(point: tuple[int, ...]) -> Trial:
    values = SPACE.configuration(point)
    fails = float(values["a"]) * float(values["b"]) > 4
    outcome = Failure(kind=FailureKind.RUN_ERROR) if fails else Measurement(seconds=(1.0,))
    return Trial(candidate=Candidate(key=str(point), configuration=json.dumps(values)), outcome=outcome)


def test_the_guilty_pair_comes_first_and_is_perfect() -> None:
    tables = pair_tables(SPACE.knobs, [trial(tuple(int(i) for i in p)) for p in SPACE.points()])
    assert (tables[0].first, tables[0].second) == ("a", "b")
    assert tables[0].contrast == 1
    assert tables[0].cells[(4, 4)] == (0, 2)
    assert len(tables) == 3
    assert all(table.contrast < 1 for table in tables[1:])


def test_without_failures_no_pair_tells_anything() -> None:
    tables = pair_tables(SPACE.knobs, [trial((0, 0, 0, 0))])
    assert {table.contrast for table in tables} == {0.0}
