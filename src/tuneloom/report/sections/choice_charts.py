"""Charts of a search's trials: times against what was expected, improvements against what was promised."""

from collections.abc import Mapping, Sequence

from tuneloom.model import Stall
from tuneloom.model.reasons import STUCK
from tuneloom.report.choices import SearchStory, ShownChoice
from tuneloom.report.drawing.axes import chart
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.scales import Linear, Logarithmic, around
from tuneloom.report.drawing.units import brief, count, duration, percent, time_unit

WIDTH, LEFT, RIGHT, TOP = 1120.0, 46.0, 12.0, 24.0
TIMES, PROMISES, BOTTOM = 260.0, 170.0, 40.0
LEAST_PROMISE = 1e-4
KEY = (
    "Every trial by the member of the search that chose it. Vertical lines are the times that its model "
    "expected, the line is the best time so far, marks on the axis are failed trials. Shaded: "
    f"{STUCK} trials or more without a better time."
)
PROMISES_KEY = (
    "Bars: the improvement on the best time that the model expected of each trial, if it runs. Dots: the "
    "improvement that came. Shaded stretches with high bars: the search was stuck; with low or no bars: it "
    "had found what its model knows of."
)


def times_chart(story: SearchStory, looks: Mapping[str, int]) -> Markup:
    """The time of every trial with what was expected; nothing if none was measured."""
    across = _across(story)
    values = [choice.seconds for choice in story.choices if choice.seconds is not None]
    if not values:
        return EMPTY
    low, high = around(values)
    up = Logarithmic(low, high, TIMES - BOTTOM, TOP)
    unit, size = time_unit(high)
    ticks = [(value, brief(value / size)) for value in up.ticks(5)]
    title = f"Time of each trial of {story.name}, {unit}"
    drawn = [
        _bands(story.stalls, across, TIMES),
        _axes(across, up, ticks, TIMES, f"time, {unit}"),
        _best(story, across, up),
        [_expected(choice, across, up) for choice in story.choices],
        [_dot(choice, across, up, looks) for choice in story.choices],
    ]
    return el("figure", chart(title, WIDTH, TIMES, drawn), el("p", KEY, class_="remark"), class_="story")


def promises_chart(story: SearchStory, looks: Mapping[str, int]) -> Markup:
    """What every trial promised and what came of it; nothing if nothing was promised."""
    across = _across(story)
    values = [c.reason.promise for c in story.choices if c.reason.promise is not None]
    if not any(values):
        return EMPTY
    gains = [choice.gain for choice in story.choices if choice.gain]
    up = Logarithmic(LEAST_PROMISE, max(0.1, *values, *gains), PROMISES - BOTTOM, TOP)
    ticks = [(value, f"{value * 100:g} %") for value in up.ticks(4)]
    title = f"Improvement promised and reached by each trial of {story.name}"
    drawn = [
        _bands(story.stalls, across, PROMISES),
        _axes(across, up, ticks, PROMISES, "improvement"),
        [_promise(choice, across, up, looks) for choice in story.choices],
    ]
    remark = el("p", PROMISES_KEY, class_="remark")
    return el("figure", chart(title, WIDTH, PROMISES, drawn), remark, class_="story")


def _across(story: SearchStory) -> Linear:
    return Linear(0, max(1, story.trials), LEFT, WIDTH - RIGHT)


def _bands(stalls: Sequence[Stall], across: Linear, height: float) -> list[Markup]:
    return [
        el(
            "rect",
            x=across(stall.first - 0.5),
            y=TOP,
            width=min(across(stall.last + 0.5), across.end) - across(stall.first - 0.5),
            height=height - BOTTOM - TOP,
            class_="away",
            data_tip=_told(stall),
        )
        for stall in stalls
    ]


def _told(stall: Stall) -> str:
    return (
        f"stuck: trials {stall.first} to {stall.last} at {duration(stall.best_s)}\n"
        f"promised {percent(stall.promised)} in all, {stall.failed} failed"
    )


def _axes(
    across: Linear, up: Logarithmic, ticks: Sequence[tuple[float, str]], height: float, name: str
) -> list[Markup]:
    bottom = height - BOTTOM
    marks = [el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis")]
    for value, text in ticks:
        marks.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(value), y2=up(value), class_="grid"))
        marks.append(el("text", text, x=LEFT - 6, y=up(value) + 3.5, class_="tick right"))
    for value in across.ticks(10):
        if value == int(value):
            marks.append(el("text", count(int(value)), x=across(value), y=bottom + 14, class_="tick"))
    marks.append(el("text", name, x=LEFT - 24, y=12, class_="axis-name left"))
    return [*marks, el("text", "trials", x=(LEFT + WIDTH - RIGHT) / 2, y=height - 6, class_="axis-name")]


def _best(story: SearchStory, across: Linear, up: Logarithmic) -> Markup:
    better = [c for c in story.choices if c.seconds is not None and (c.gain is None or c.gain > 0)]
    if not better:
        return EMPTY
    steps = [f"M{across(better[0].trial):.1f} {up(better[0].seconds or 0):.1f}"]
    steps += [f"H{across(c.trial):.1f}V{up(c.seconds or 0):.1f}" for c in better[1:]]
    return el("path", d="".join([*steps, f"H{across(story.trials):.1f}"]), class_="curve line0")


def _expected(choice: ShownChoice, across: Linear, up: Logarithmic) -> Markup:
    expected, error = choice.reason.expected_s, choice.reason.error
    if expected is None or error is None:
        return EMPTY
    ends = [min(max(each, up.low), up.high) for each in (expected / (1 + error), expected * (1 + error))]
    x = across(choice.trial)
    return el("line", x1=x, x2=x, y1=up(ends[0]), y2=up(ends[1]), class_="expected", data_tip=_tip(choice))


def _dot(choice: ShownChoice, across: Linear, up: Logarithmic, looks: Mapping[str, int]) -> Markup:
    x, tip = across(choice.trial), _tip(choice)
    if choice.seconds is None:
        y = TIMES - BOTTOM
        return el("line", x1=x, x2=x, y1=y - 7, y2=y, class_="failed", data_tip=tip)
    look = f"s{looks[choice.reason.member]}"
    return el("circle", cx=x, cy=up(choice.seconds), r=3, class_=look, data_tip=tip)


def _promise(choice: ShownChoice, across: Linear, up: Logarithmic, looks: Mapping[str, int]) -> Markup:
    x, bottom, tip = across(choice.trial), PROMISES - BOTTOM, _tip(choice)
    bar, dot = EMPTY, EMPTY
    if (promise := choice.reason.promise or 0.0) > LEAST_PROMISE:
        width = max(1.0, min(5.0, 0.6 * (across(1) - across(0))))
        box = {"x": x - width / 2, "y": up(promise), "width": width, "height": bottom - up(promise)}
        bar = el("rect", **box, class_="rival", data_tip=tip)
    if (gain := choice.gain or 0.0) > LEAST_PROMISE:
        dot = el("circle", cx=x, cy=up(gain), r=3.5, class_=f"s{looks[choice.reason.member]}", data_tip=tip)
    return el("g", bar, dot)


def _tip(choice: ShownChoice) -> str:
    reason = choice.reason
    lines = [
        f"trial {count(choice.trial)}: {duration(choice.seconds) if choice.seconds else 'failed'}",
        reason.member,
    ]
    if reason.expected_s is not None:
        lines.append(f"expected {duration(reason.expected_s)} ± {percent(reason.error or 0.0)}")
    if reason.promise is not None:
        lines.append(f"promised {percent(reason.promise)}, improved by {percent(choice.gain or 0.0)}")
    if reason.risk is not None:
        lines.append(f"risk of failure {percent(reason.risk)}")
    return "\n".join(lines)
