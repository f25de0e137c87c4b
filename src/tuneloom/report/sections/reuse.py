"""Who gave schedules to whom, and what came of it."""

import math

from tuneloom.report.data import Gift, ReportData, ShownCluster
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import Head, numbers, table
from tuneloom.report.drawing.units import clipped, duration, times

HALF, HEIGHT, WIDEST = 90.0, 12.0, 8.0


def reuse_section(data: ReportData) -> Markup:
    """Clusters and gifts; nothing if nothing was shared."""
    if not data.gifts and not data.clusters:
        return EMPTY
    return el("div", _summary(data), _clusters(data), _gifts(data))


def _summary(data: ReportData) -> Markup:
    won = sum(1 for gift in data.gifts if (gift.gain or 0.0) > 1.0)
    used = sum(1 for gift in data.gifts if gift.used)
    members = sum(len(cluster.members) for cluster in data.clusters)
    parts = []
    if data.clusters:
        parts.append(f"{members} tasks in {len(data.clusters)} clusters.")
    if data.gifts:
        parts.append(
            f"{len(data.gifts)} schedules were borrowed: {won} were faster than the untuned kernel, "
            f"{len(data.gifts) - won} were not; {used} are used in the final model."
        )
    return el("p", " ".join(parts))


def _clusters(data: ReportData) -> Markup:
    if not data.clusters:
        return EMPTY
    return el("ul", [_cluster(cluster, data) for cluster in data.clusters], class_="clusters")


def _cluster(cluster: ShownCluster, data: ReportData) -> Markup:
    others = [member for member in cluster.members if member != cluster.representative]
    return el(
        "li",
        el("span", clipped(data.called(cluster.representative), 44), class_="chip strong"),
        el("span", "tuned for", class_="quiet") if others else el("span", "single", class_="quiet"),
        [el("span", clipped(data.called(member), 44), class_="chip") for member in others],
    )


def _gifts(data: ReportData) -> Markup:
    if not data.gifts:
        return EMPTY
    compared = ("slower ◂ ▸ faster", "middle")
    heads: list[Head] = ["from", "to", *numbers("untuned", "borrowed"), compared, *numbers("gain"), "used"]
    ordered = sorted(data.gifts, key=lambda gift: -(gift.gain or 0.0))
    return table("gifts", heads, [_gift(gift, data) for gift in ordered])


def _gift(gift: Gift, data: ReportData) -> Markup:
    return el(
        "tr",
        el("td", clipped(data.called(gift.donor), 40), el("span", gift.source, class_="under")),
        el("td", clipped(data.called(gift.receiver), 40)),
        el("td", duration(gift.before_s), class_="number"),
        el("td", duration(gift.after_s), class_="number"),
        el("td", _bar(gift.gain), class_="middle"),
        el("td", times(gift.gain), class_="number strong"),
        el("td", "yes" if gift.used else "no"),
    )


def _bar(gain: float | None) -> Markup:
    """A bar to the right for faster and to the left for slower, on a logarithmic axis."""
    reach = 0.0 if not gain else max(-1.0, min(1.0, math.log(gain) / math.log(WIDEST))) * HALF
    look = "good" if reach >= 0 else "bad"
    mark = el("rect", x=HALF + min(0.0, reach), y=0, width=abs(reach), height=HEIGHT, rx=2, class_=look)
    middle = el("line", x1=HALF, x2=HALF, y1=0, y2=HEIGHT, class_="axis")
    box = f"0 0 {2 * HALF:g} {HEIGHT:g}"
    return el("svg", mark, middle, viewBox=box, width=2 * HALF, height=HEIGHT, role="img")
