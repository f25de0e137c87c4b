"""The top of the page: what came of the run."""

from datetime import UTC, datetime
from typing import NamedTuple

from tuneloom.report.data import ModelResult, ReportData
from tuneloom.report.drawing.axes import chart
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.units import count, duration, percent, times

BAR = 320.0
_SHORT_NAMES, _LONG_NAMES = 48.0, 84.0
MARK = "M3 9h18M3 15h18M9 3v4.5M9 10.5V21M15 3v10.5M15 16.5V21"


class _Bar(NamedTuple):
    """A latency of a model as a bar."""

    look: str
    name: str
    seconds: float | None


def masthead(data: ReportData) -> Markup:
    """Whose page this is: the run, its command, its time and state."""
    began = datetime.fromtimestamp(data.created, UTC).strftime("%-d %B %Y, %H:%M UTC") if data.created else ""
    state = el("span", data.status, class_=f"state {data.status}")
    return el(
        "header",
        brand(),
        el("h1", data.run),
        el(
            "p", state, el("span", began), el("code", data.command) if data.command else EMPTY, class_="about"
        ),
        el("p", data.message, class_="message") if data.message else EMPTY,
    )


def brand() -> Markup:
    """The name of the program and its mark."""
    mark = el("svg", el("path", d=MARK), viewBox="0 0 24 24", class_="logo", aria_hidden="true")
    return el("div", mark, el("span", "Tuneloom", class_="brand"), class_="top")


def headline(data: ReportData) -> Markup:
    """A card for every model and the totals of the run."""
    return el("div", el("div", [_card(model) for model in data.models], class_="cards"), _totals(data))


def _card(model: ModelResult) -> Markup:
    number, verdict = _verdict(model)
    return el(
        "article",
        el("h2", model.name),
        el("p", el("span", number, class_="big"), el("span", verdict, class_="unit"), class_="gain"),
        _before_after(model),
        el(
            "p",
            " · ".join(filter(None, (_energy(model), model.layout, model.device, model.target))),
            class_="quiet clip",
        ),
        class_="card",
    )


def _energy(model: ModelResult) -> str:
    return "" if model.energy_j is None else f"{model.energy_j * 1e3:.3g} mJ a run"


def _verdict(model: ModelResult) -> tuple[str, str]:
    gain = model.speed_up
    if model.best:
        return duration(model.after_s), f"with {model.best}"
    if model.left == "whole":
        return duration(model.after_s), f"left in {model.own_runtime}, which is faster"
    if model.against_own_runtime is not None:
        number, word = _faster(model.against_own_runtime)
        parts = ", to which parts are left" if model.left else ""
        return number, f"{word} than {model.own_runtime}{parts}"
    if gain is None:
        return "–", "not compared" if model.status == "finished" else model.status
    return _faster(gain)


def _faster(gain: float) -> tuple[str, str]:
    return (times(gain), "faster") if gain >= 1 else (times(1 / gain), "slower")


def _before_after(model: ModelResult) -> Markup:
    longest = max(model.before_s or 0.0, model.after_s or 0.0, model.own_runtime_s or 0.0)
    if model.best or not longest:
        return EMPTY
    rows = [
        _Bar("before", "before", model.before_s),
        _Bar("after", "after", model.after_s),
        _Bar("rival", model.own_runtime, model.own_runtime_s),
    ]
    shown = [bar for bar in rows if bar.seconds]
    names = _LONG_NAMES if model.own_runtime_s else _SHORT_NAMES
    marks = [_timed(bar, 26.0 * row, longest, names) for row, bar in enumerate(shown)]
    label = f"{duration(model.before_s)} before, {duration(model.after_s)} after"
    if model.own_runtime_s:
        label += f", {duration(model.own_runtime_s)} in {model.own_runtime}"
    return chart(label, BAR, 26 * len(shown) - 4, marks, class_="before-after")


def _timed(bar: _Bar, y: float, longest: float, names: float) -> Markup:
    seconds = bar.seconds or 0.0
    width = max(2.0, seconds / longest * (BAR - names - 82))
    return el(
        "g",
        el("text", bar.name, x=0, y=y + 15, class_="tick left"),
        el("rect", x=names, y=y + 3, width=width, height=16, rx=2, class_=bar.look),
        el("text", duration(seconds), x=names + width + 8, y=y + 15.5, class_="value left"),
    )


def _totals(data: ReportData) -> Markup:
    trials = sum(model.trials for model in data.models) or sum(task.trials for task in data.tasks)
    failed = sum(failure.count for failure in data.failures)
    devices = sorted({model.device for model in data.models if model.device})
    facts = [
        ("trials", count(trials), f"{len(data.tasks)} tasks" if data.tasks else ""),
        ("tuning time", duration(data.seconds), _pace(trials, data.seconds)),
        ("failed trials", count(failed), percent(failed / trials) if trials else ""),
        _devices(devices),
    ]
    return el("dl", [_total(*fact) for fact in facts], class_="totals")


def _devices(keys: list[str]) -> tuple[str, str, str]:
    if len(keys) > 1:
        return "devices", f"{len(keys)} kinds", ", ".join(keys)
    return "device", "".join(keys) or "–", ""


def _pace(trials: int, seconds: float | None) -> str:
    return f"{trials / seconds * 60:.0f} trials a minute" if trials and seconds else ""


def _total(name: str, value: str, detail: str) -> Markup:
    return el("div", el("dt", name), el("dd", value), el("dd", detail, class_="quiet") if detail else EMPTY)
