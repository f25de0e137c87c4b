"""How a job divides its time between hosts and devices, and how much of it is left."""

from dataclasses import dataclass, field

STEPS_TO_COME = 64
"""How many more steps a job is thought to have that does not tell."""


@dataclass(slots=True)
class KeyUse:
    """One job on one device key: seconds spent, the fraction of its time, seconds to come."""

    spent_s: float = 0.0
    fraction: float = 0.0
    left_s: float = 0.0


@dataclass(slots=True)
class Appetite:
    """What one job spent where, and what it is expected to spend.

    `took_s` and `promised_s` tell how far its own forecasts are off: a new one is read
    as these teach. `expected_s` is the remaining time that was counted last, `host_fraction` the
    fraction of its time that it spends on hosts.
    """

    total_s: float = 0.0
    host_fraction: float = 0.0
    keys: dict[str, KeyUse] = field(default_factory=dict)
    host_left_s: float = 0.0
    expected_s: float = 0.0
    took_s: float = 0.0
    promised_s: float = 0.0

    def remaining_s(self, forecast_s: float | None, steps: int) -> float:
        """How long the job will go on, after so many steps; 0 if nobody knows.

        Of a job that forecasts nothing it is known how long its steps are. It is thought to
        have as many of them to come as any other: so jobs of longer steps are longer jobs.
        """
        if forecast_s is None:
            return STEPS_TO_COME * self.total_s / steps if steps else 0.0
        if self.promised_s > 0:
            return forecast_s * self.took_s / self.promised_s
        return forecast_s

    def compare(self, promised_s: float | None, took_s: float) -> None:
        """A stage took so long and had been forecast so long."""
        if promised_s is not None:
            self.took_s += took_s
            self.promised_s += promised_s
