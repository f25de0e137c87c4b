"""What searches chose and why, kernel by kernel: members, charts of their trials, and stalls."""

from collections.abc import Sequence

from tuneloom.model import Stall
from tuneloom.report.choices import MemberResult, SearchStory
from tuneloom.report.data import ReportData
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import numbers, table
from tuneloom.report.drawing.units import count, duration, percent
from tuneloom.report.sections.choice_charts import promises_chart, times_chart

FIRST_SHOWN = 3
LOOKS = (3, 2, 1, 4, 6, 7, 8, 9, 0, 5)


def choices_section(data: ReportData) -> Markup:
    """For each kernel whose trials have reasons, what its search chose; the first ones at once."""
    stories = data.stories
    if not stories:
        return EMPTY
    shown = [
        el("div", _story(each, headed=len(stories) > 1), class_="late" if place >= FIRST_SHOWN else None)
        for place, each in enumerate(stories)
    ]
    more = EMPTY
    if len(stories) > FIRST_SHOWN:
        more = el(
            "button", f"Show all {len(stories)} searches", type="button", class_="more", data_opens="searches"
        )
    return el("div", el("div", shown, class_="stories", id="searches"), more)


def _story(story: SearchStory, headed: bool) -> list[Markup]:
    looks = {member.name: LOOKS[n % len(LOOKS)] for n, member in enumerate(story.members)}
    return [
        el("h3", story.name) if headed else EMPTY,
        _members(story.members, looks),
        times_chart(story, looks),
        promises_chart(story, looks),
        _stuck(story.stalls),
    ]


def _members(members: Sequence[MemberResult], looks: dict[str, int]) -> Markup:
    rows = [
        el(
            "tr",
            el("td", _sample(looks[member.name]), member.name, class_="strong member"),
            [_number(count(value)) for value in (member.chosen, member.failed, member.improved)],
            _number(duration(member.best_s)),
            _number("–" if member.promised is None else percent(member.promised)),
            _number(percent(member.gained)),
        )
        for member in members
    ]
    heads = numbers("trials", "failed", "better than all before", "best", "promised in all", "gained in all")
    return table("members", ["chosen by", *heads], rows)


def _number(text: str) -> Markup:
    return el("td", text, class_="number")


def _sample(look: int) -> Markup:
    dot = el("circle", cx=6, cy=6, r=5, class_=f"s{look}")
    return el("svg", dot, width=12, height=12, viewBox="0 0 12 12", class_="swatch")


def _stuck(found: Sequence[Stall]) -> Markup:
    if not found:
        return EMPTY
    rows = [
        el(
            "tr",
            el("td", f"{count(stall.first)} to {count(stall.last)}", class_="strong"),
            _number(count(stall.length)),
            _number(duration(stall.best_s)),
            _number(percent(stall.promised)),
            _number(count(stall.failed)),
        )
        for stall in found
    ]
    heads = numbers("trials", "best meanwhile", "promised in all", "failed")
    return table("stuck", ["no better time in trials", *heads], rows)
