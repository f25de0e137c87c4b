"""What a kernel's file may say of how it is tuned."""

from typing import Any

from tuneloom.errors import SpaceError

_WHOLE, _NUMBER, _TEXT, _TRUTH = (int,), (int, float), (str,), (bool,)
_WORDS: dict[tuple[type, ...], str] = {
    _WHOLE: "a whole number",
    _NUMBER: "a number",
    _TEXT: "text",
    _TRUTH: "true or false",
}
_TUNING: dict[str, tuple[type, ...]] = {
    "trials": _WHOLE,
    "seconds": _NUMBER,
    "goal_ms": _NUMBER,
    "build_timeout_s": _NUMBER,
    "run_timeout_s": _NUMBER,
    "search": _TEXT,
    "init": _TEXT,
    "presample": _TRUTH,
    "spare": _WHOLE,
}


def tuning_values(section: Any) -> dict[str, Any]:
    """The section if all of it is known and of its kind; raises SpaceError otherwise."""
    if not isinstance(section, dict):
        raise SpaceError("[tuning] must be a section")
    for key, value in section.items():
        if key not in _TUNING:
            raise SpaceError(f"unknown key {key!r} in [tuning]; known: {', '.join(_TUNING)}")
        kinds = _TUNING[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise SpaceError(f"{key!r} in [tuning] has the value {value!r}; that is not {_WORDS[kinds]}")
    return section
