"""Programs of several sizes are timed in turns, so that a slow moment is not held against one of them."""

from collections.abc import Callable

from tuneloom.tuners.tvm.models.sizes.timing import in_rounds


class Machine:
    """A clock that timed runs move on; for a while every run takes twice as long."""

    def __init__(self, slow_from: float = 0.0, slow_until: float = 0.0) -> None:
        self.now, self._slow = 0.0, (slow_from, slow_until)
        self.runs: list[float] = []

    def clock(self) -> float:
        return self.now

    def program(self, seconds: float) -> Callable[[], float]:
        def timer() -> float:
            slow = self._slow[0] <= self.now < self._slow[1]
            taken = seconds * 2 if slow else seconds
            self.now += taken
            self.runs.append(seconds)
            return taken

        return timer


def test_a_slow_second_changes_no_time() -> None:
    machine = Machine(slow_from=0.5, slow_until=1.5)
    programs = [machine.program(seconds) for seconds in (0.04, 0.03, 0.02)]
    assert in_rounds(programs, machine.clock) == (0.04, 0.03, 0.02)


def test_short_programs_get_many_rounds_and_long_ones_three() -> None:
    machine = Machine()
    in_rounds([machine.program(0.001)], machine.clock)
    assert len(machine.runs) == 60
    machine = Machine()
    in_rounds([machine.program(2.0), machine.program(1.0)], machine.clock)
    assert machine.runs == [2.0, 2.0, 1.0, 1.0] * 3
