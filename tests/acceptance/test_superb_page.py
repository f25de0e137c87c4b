"""The page of a grid in a real browser: no complaints, marks in every chart, hover and sorting."""

from collections.abc import Iterator
from random import Random

import pytest

from support.browser import Browser, installed_browser
from tuneloom.report.superb.data import GridData, GridGroup, GridRun
from tuneloom.report.superb.page import render_grid

FOUND = installed_browser()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(FOUND is None, reason="no Chromium here: `make browser` installs Debian's"),
]
POLICIES = ("load-aware", "interleaved", "sequential")


def sample_grid() -> GridData:
    chance = Random(0)
    groups = []
    for policy in POLICIES:
        values = {"models": "zoo:squeezenet + zoo:resnet18", "policy": policy}
        runs = [sample_run(values, seed, chance) for seed in range(3)]
        groups.append(GridGroup(values=values, runs=tuple(runs)))
    return GridData(name="policies", fixed={"trials": "200"}, groups=tuple(groups))


def sample_run(values: dict[str, str], seed: int, chance: Random) -> GridRun:
    tuning_s = chance.uniform(60, 120)
    stages = {"select": 0.1 * tuning_s, "build": 0.5 * tuning_s, "profile": 0.6 * tuning_s}
    return GridRun(
        values=values,
        seed=str(seed),
        status="finished",
        tuning_s=tuning_s,
        before_s=0.02,
        after_s=chance.uniform(0.005, 0.006),
        speed_up=chance.uniform(3, 4),
        trials=200,
        failed=seed,
        stage_s=stages,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert FOUND is not None
    path = tmp_path_factory.mktemp("superb") / "index.html"
    path.write_text(render_grid(sample_grid()), encoding="utf-8")
    browser = Browser(*FOUND)
    browser.open(path)
    yield browser
    browser.close()


def count(page: Browser, selector: str) -> int:
    return int(page.script("return document.querySelectorAll(arguments[0]).length", selector))


def test_it_loads_without_a_complaint_or_a_request(page: Browser) -> None:
    assert page.complaints() == []
    assert page.script("return performance.getEntriesByType('resource').length") == 0


def test_every_run_is_a_point_and_every_group_a_row(page: Browser) -> None:
    assert count(page, "#tuning-time circle") == 9
    assert count(page, "#tuning-time .row-name") == 3
    assert count(page, "#where-the-time-went rect.mark") == 9
    assert count(page, "#latency-against-tuning-time svg[role=img] circle") == 9
    assert count(page, "#all-runs tbody tr") == 9


def test_labels_stay_inside_their_charts(page: Browser) -> None:
    cut = page.script(
        "return [...document.querySelectorAll('section svg[role=img] text')].filter(t => {"
        " const b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();"
        " return b.left < s.left - 1 || b.right > s.right + 1 }).map(t => t.textContent)"
    )
    assert cut == []


def test_pointing_at_a_run_tells_about_it(page: Browser) -> None:
    page.hover("#tuning-time circle")
    tip = page.script("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    assert "policy: load-aware" in tip and "seed 0" in tip


def test_a_click_sorts_the_table(page: Browser) -> None:
    page.click("#all-runs th:nth-child(5) button")
    times = page.script(
        "return [...document.querySelectorAll('#all-runs tbody tr')].map(r => +r.children[4].dataset.v)"
    )
    assert times == sorted(times, reverse=True)
