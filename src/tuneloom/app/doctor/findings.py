"""What a check finds: a value, a verdict, and a remedy where one is needed."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How a finding affects tuning."""

    GOOD = "ok"
    NOTE = "note"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's answer; `remedy` is empty where nothing has to be done."""

    name: str
    value: str
    verdict: Severity = Severity.GOOD
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """The finding as plain values."""
        return asdict(self)


Check = Callable[[], Sequence[Finding]]


def examined(checks: Sequence[tuple[str, Check]]) -> tuple[Finding, ...]:
    """The findings of all checks; one that fails is a finding itself and does not end the others."""
    findings: list[Finding] = []
    for name, check in checks:
        try:
            findings += check()
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            findings.append(Finding(name=name, value=f"can't be examined: {text}", verdict=Severity.WARNING))
    return tuple(findings)


def good(name: str, value: str) -> list[Finding]:
    """Nothing to do."""
    return [Finding(name=name, value=value)]


def warning(name: str, value: str, remedy: str) -> list[Finding]:
    """Tuning works, but measurements may suffer."""
    return [Finding(name=name, value=value, verdict=Severity.WARNING, remedy=remedy)]


def broken(name: str, value: str, remedy: str) -> list[Finding]:
    """Something that users need does not work."""
    return [Finding(name=name, value=value, verdict=Severity.BROKEN, remedy=remedy)]


def note(name: str, value: str, remedy: str = "") -> list[Finding]:
    """Good to know."""
    return [Finding(name=name, value=value, verdict=Severity.NOTE, remedy=remedy)]
