"""What numbers that people give may be: always finite, always in a range."""

from dataclasses import dataclass
from math import inf
from typing import Any

from tuneloom.errors import BudgetError

_MOST_WHOLE = 2**31 - 1
_MOST = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberKind:
    """A range of numbers, whole ones only with `whole`; `words` say it to people.

    The upper limits are far beyond what makes sense, and what every database, clock and
    random generator can take.
    """

    words: str
    least: float
    most: float = _MOST
    whole: bool = False
    excludes_least: bool = False

    def fits(self, value: Any) -> bool:
        """Whether a value is such a number; true and false are none."""
        if not self._is_number(value):
            return False
        return bool(self.least < value <= self.most or (value == self.least and not self.excludes_least))

    def words_for(self, value: Any) -> str:
        """What a value that does not fit should have been."""
        if self._is_number(value) and self.most < value < inf:
            return f"at most {self.most:.10g}"
        return self.words

    def require(self, name: str, value: Any) -> None:
        """Raise BudgetError unless a value fits."""
        if not self.fits(value):
            raise BudgetError(f"{name} must be {self.words_for(value)}, got {value!r}")

    def _is_number(self, value: Any) -> bool:
        return isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)


COUNT = NumberKind(words="a whole number of at least 1", least=1, most=_MOST_WHOLE, whole=True)
NATURAL = NumberKind(words="a whole number of at least 0", least=0, most=_MOST_WHOLE, whole=True)
SEED = NATURAL
WHOLE = NumberKind(words="a whole number", least=-_MOST_WHOLE, most=_MOST_WHOLE, whole=True)
BYTES = NumberKind(words="a whole number of at least 1", least=1, most=2**50, whole=True)
POSITIVE = NumberKind(words="a number above 0", least=0, excludes_least=True)
NOT_NEGATIVE = NumberKind(words="a number of at least 0", least=0)
RATIO = NumberKind(words="a number of at least 1", least=1)
