"""How fast hosts are: machines of a farm differ, and a stage takes longer on a slow one."""

from tuneloom.scheduling.policies.load_aware.predictions import Estimate


class Speeds:
    """What stages take on a host against what was predicted for them, relative to all hosts.

    Predictions are of a host of average speed. With one host there is nothing to compare.
    """

    def __init__(self) -> None:
        self._ratios: dict[str, Estimate] = {}
        self._sum = 0.0

    def factor(self, host: str) -> float:
        """How many times longer than on an average host a stage takes; 1 while nothing is known."""
        ratio = self._ratios.get(host)
        if ratio is None or len(self._ratios) < 2:
            return 1.0
        return ratio.value * len(self._ratios) / self._sum

    def learn(self, host: str, predicted_s: float, seconds: float) -> None:
        """A stage that was predicted to take so long on an average host took so long there."""
        if predicted_s <= 0 or seconds <= 0:
            return
        ratio = self._ratios.get(host)
        if ratio is None:
            ratio = self._ratios[host] = Estimate()
        self._sum -= ratio.value
        ratio.add(seconds / predicted_s)
        self._sum += ratio.value

    def forget(self, host: str) -> None:
        """A host is gone; should it come back it may be another machine."""
        ratio = self._ratios.pop(host, None)
        if ratio is not None:
            self._sum -= ratio.value
