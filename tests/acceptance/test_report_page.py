"""The report page in a real browser: no complaints, marks in every chart, hover, zoom and sorting."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser import Browser, installed_browser
from support.samples.report import sample_report
from tuneloom.report import render_report

FOUND = installed_browser()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(FOUND is None, reason="no Chromium here: `make browser` installs Debian's"),
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert FOUND is not None
    started = Browser(*FOUND)
    yield started
    started.close()


@pytest.fixture(scope="module")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "small.html"
    path.write_text(render_report(sample_report()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "large.html"
    path.write_text(render_report(sample_report(tasks=50, rounds=10, batch=10)), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Browser, small_page: Path) -> Browser:
    browser.open(small_page)
    return browser


def count(browser: Browser, selector: str) -> int:
    return int(browser.script("return document.querySelectorAll(arguments[0]).length", selector))


def tip(browser: Browser) -> str:
    shown = browser.script("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    return str(shown)


def test_the_page_loads_without_a_complaint(page: Browser) -> None:
    assert page.complaints() == []
    assert page.script("return document.title") == "amber-heron-42 · Tuneloom"
    assert page.script("return performance.getEntriesByType('resource').length") == 0


def test_every_chart_has_marks_and_a_size(page: Browser) -> None:
    sizes = page.script(
        "return [...document.querySelectorAll('main svg:not(.swatch)')].map(s => {"
        "const b = s.getBoundingClientRect();"
        "return [s.querySelectorAll('rect, path, circle, line').length, b.width, b.height]})"
    )
    visible = [size for size in sizes if size[1] > 0]
    assert len(visible) > 25
    assert all(marks > 0 and width > 40 and height > 8 for marks, width, height in visible)


def test_nothing_sticks_out_of_the_page(page: Browser) -> None:
    overflow = page.script("const d = document.documentElement; return d.scrollWidth - d.clientWidth")
    assert overflow <= 0


def test_no_text_of_a_chart_is_cut_off(page: Browser) -> None:
    cut = page.script(
        "return [...document.querySelectorAll('main svg text')].filter(t => {"
        "const s = t.ownerSVGElement.getBoundingClientRect(), b = t.getBoundingClientRect();"
        "return b.width && (b.left < s.left - 2 || b.right > s.right + 2)}).map(t => t.textContent)"
    )
    assert cut == []


def test_every_axis_names_what_it_shows(page: Browser) -> None:
    names = page.script("return [...document.querySelectorAll('.axis-name')].map(t => t.textContent)")
    assert {"time since the run began", "trials", "time × weight in one execution of the model, ms"} <= set(
        names
    )


def test_hovering_over_a_stage_tells_job_task_and_duration(page: Browser) -> None:
    page.hover("#gantt-marks rect.k1")
    told = tip(page).splitlines()
    assert told[0] == "select · host"
    assert told[1].startswith("network-")
    assert told[2].startswith("fused_")
    assert " s, from " in told[3]


def test_hovering_elsewhere_hides_what_was_told(page: Browser) -> None:
    page.hover("#gantt-marks rect.k1")
    page.hover("h1")
    assert tip(page) == ""


def test_hovering_over_a_curve_tells_trial_and_time(page: Browser) -> None:
    page.hover("#curves circle.point")
    assert "trial " in tip(page)


def test_dragging_zooms_in_and_double_zoom_out_returns(page: Browser) -> None:
    ticks = "return [...document.querySelectorAll('#gantt-axis text')].map(t => t.textContent)"
    before = page.script(ticks)
    page.drag("#gantt-chart", 0.4, 0.5)
    zoomed = page.script(ticks)
    assert zoomed != before
    assert count(page, "#gantt-marks .bar-label") > 0
    page.click("#zoom-reset")
    assert page.script(ticks) == before


def test_zoom_buttons_change_the_window(page: Browser) -> None:
    ticks = "return document.querySelector('#gantt-axis text').textContent"
    page.click("#zoom-in")
    assert page.script(ticks) != "0 min"
    page.click("#zoom-out")
    assert page.script(ticks) == "0 min"


def test_one_job_can_be_looked_at_alone(page: Browser) -> None:
    everything = count(page, "#gantt-marks rect")
    page.script(
        "const s = document.getElementById('gantt-job'); s.value = 'run.1';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert 0 < count(page, "#gantt-marks rect") < everything


def test_the_first_drawing_is_the_same_with_and_without_the_script(page: Browser, small_page: Path) -> None:
    drawn = count(page, "#gantt-marks rect")
    page.script("document.querySelector('#gantt-marks').replaceChildren()")
    in_file = small_page.read_text(encoding="utf-8")
    marks = in_file[in_file.index('id="gantt-marks"') : in_file.index('id="gantt-brush"')]
    assert abs(marks.count("<rect") - 1 - drawn) <= drawn * 0.02


def test_the_table_sorts_by_number(page: Browser) -> None:
    speed_ups = (
        "const rows = [...document.querySelectorAll('table.tasks tbody tr')];"
        "return rows.map(row => Number(row.children[9].dataset.v))"
    )
    page.script("document.querySelectorAll('table.tasks th button')[9].click()")
    values = page.script(speed_ups)
    assert values == sorted(values, reverse=True)
    page.script("document.querySelectorAll('table.tasks th button')[9].click()")
    assert page.script(speed_ups) == sorted(values)


def test_all_curves_are_shown_on_request(page: Browser) -> None:
    visible = "return [...document.querySelectorAll('#curves figure')].filter(f => f.offsetParent).length"
    assert page.script(visible) == 12
    page.click("button.more")
    assert page.script(visible) == 16


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(page: Browser, scheme: str) -> None:
    page.prefer(scheme)
    ink, paper = page.script(
        "const s = getComputedStyle(document.querySelector('section'));"
        "return [s.color, s.backgroundColor].map(c => c.match(/[0-9]+/g).slice(0, 3).map(Number))"
    )
    assert contrast(ink, paper) > 7
    assert (sum(paper) > 600) == (scheme == "light")
    assert page.screenshot().startswith(PNG)
    page.prefer("light")


def contrast(one: list[int], other: list[int]) -> float:
    """The contrast ratio that accessibility guidelines define."""
    light, dark = sorted((brightness(one), brightness(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def brightness(colour: list[int]) -> float:
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_twenty_thousand_stages_are_drawn_at_once_and_zoomed_quickly(
    browser: Browser, large_page: Path
) -> None:
    browser.open(large_page)
    assert browser.complaints() == []
    assert 500 < count(browser, "#gantt-marks rect") < 8000
    browser.hover("#gantt-marks rect.gathered")
    assert "short stages here, zoom in to see them" in tip(browser)
    browser.drag("#gantt-chart", 0.5, 0.51)
    assert count(browser, "#gantt-marks rect:not(.gathered)") > 20
