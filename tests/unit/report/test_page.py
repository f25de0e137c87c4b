"""The page shows what is there, leaves out what is not, and needs nothing else."""

import re
from dataclasses import replace
from html import unescape

import pytest

from support.samples.report import sample_report
from tuneloom.report import ModelResult, ReportData, ResourceInfo, ResourceSpan, TaskResult, render_report
from tuneloom.report.sections.usage import usage_of

ALL_SECTIONS = [
    "Timeline of resources",
    "Utilisation and waiting",
    "Progress",
    "Kernels before and after",
    "Tuning curves",
    "Failures",
    "Reused schedules",
    "Valid and invalid configurations",
    "All tasks",
    "How it was measured",
]


def sections(page: str) -> list[str]:
    return re.findall(r"<section[^>]*><h2>([^<]*)</h2>", page)


def test_a_full_report_has_all_sections() -> None:
    assert sections(render_report(sample_report())) == ALL_SECTIONS


def test_what_devices_counted_has_a_section_of_its_own() -> None:
    counters = {"cycles": 118170.0, "compute busy": 0.853}
    data = sample_report()
    first, *others = data.tasks
    page = render_report(replace(data, tasks=(replace(first, counters=counters), *others)))
    table = page[page.index("Device counters") :]
    assert "compute busy" in table and "118\N{THIN SPACE}170" in table
    assert "85" in table[: table.index("</table>")]


def test_an_empty_run_still_has_a_page() -> None:
    page = render_report(ReportData(run="amber-heron-42", status="running"))
    assert sections(page) == []
    assert "<h1>amber-heron-42</h1>" in page


def test_sections_without_data_are_left_out() -> None:
    page = render_report(replace(sample_report(), clusters=(), gifts=(), validity=(), spans=()))
    left_out = {
        "Timeline of resources",
        "Utilisation and waiting",
        "Reused schedules",
        "Valid and invalid configurations",
    }
    assert sections(page) == [title for title in ALL_SECTIONS if title not in left_out]


def test_the_same_data_give_the_same_page() -> None:
    assert render_report(sample_report()) == render_report(sample_report())


def test_the_page_refers_to_nothing_outside() -> None:
    page = render_report(sample_report())
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]+\.|@import|<link[^>]+href=\"(?!data:)|src=", without_names)
    assert "default-src 'none'" in unescape(page)


def test_names_from_outside_are_escaped_everywhere() -> None:
    evil = '<script>alert("x")</script>'
    data = ReportData(
        run=evil,
        command=evil,
        message=evil,
        status="failed",
        models=(ModelResult(job=evil, name=evil, before_s=2.0, after_s=1.0, device=evil, target=evil),),
        tasks=(
            TaskResult(job=evil, key=evil, name=evil, shapes=evil, before_s=2.0, after_s=1.0, origin=evil),
        ),
        spans=(ResourceSpan(job=evil, task=evil, kind=evil, resource=evil, start_s=0.0, end_s=1.0),),
        names={evil: evil},
    )
    page = render_report(data)
    assert "<script>alert" not in page
    assert page.count("<script") == 2


def test_the_energy_of_a_run_is_shown_where_it_was_measured() -> None:
    models = [ModelResult(job="j", name="m", after_s=2.0, energy_j=energy) for energy in (0.0474, None)]
    told, silent = (render_report(ReportData(run="r", models=(model,))) for model in models)
    assert "47.4 mJ a run" in told and "a run" not in silent.split("</article>")[0]


def test_the_layout_that_times_decided_on_is_told() -> None:
    model = ModelResult(job="j", name="m", after_s=2.0, layout="channels_first")
    assert "channels_first" in render_report(ReportData(run="r", models=(model,))).split("</article>")[0]


def test_a_slower_model_is_called_slower() -> None:
    page = render_report(
        ReportData(run="r", models=(ModelResult(job="j", name="m", before_s=1.0, after_s=2.0),))
    )
    assert "2.00×" in page and "slower" in page


def test_the_number_at_the_top_is_against_the_own_runtime_where_that_was_timed() -> None:
    model = ModelResult(
        job="j", name="m", before_s=8.0, after_s=2.0, own_runtime="ONNX Runtime", own_runtime_s=3.0
    )
    page = render_report(ReportData(run="r", models=(model,)))
    assert '<span class="big">1.50×</span>' in page and "faster than ONNX Runtime" in page


def test_the_number_at_the_top_compares_times_that_were_taken_in_turn() -> None:
    model = ModelResult(
        job="j", name="m", after_s=2.0, own_runtime="ONNX Runtime", own_runtime_s=3.0, beside_s=2.5
    )
    page = render_report(ReportData(run="r", models=(model,)))
    assert '<span class="big">1.20×</span>' in page and ">ONNX Runtime</text>" in page


def test_a_model_that_was_left_in_its_own_runtime_is_not_called_faster() -> None:
    model = ModelResult(
        job="j",
        name="m",
        before_s=8.0,
        after_s=2.0,
        own_runtime="ONNX Runtime",
        own_runtime_s=2.0,
        left="whole",
    )
    page = render_report(ReportData(run="r", models=(model,)))
    assert "left in ONNX Runtime, which is faster" in page


def test_a_model_without_latencies_is_not_called_faster() -> None:
    page = render_report(ReportData(run="r", models=(ModelResult(job="j", name="m", status="failed"),)))
    assert '<span class="unit">failed</span>' in page
    assert "faster" not in page.split("<main>")[1].split("<script")[0]


@pytest.mark.parametrize(("kind", "looks"), [("build", 2), ("profile", 3), ("cook", 6)])
def test_every_kind_has_its_look(kind: str, looks: int) -> None:
    spans = (ResourceSpan(job="j", task="t", kind=kind, resource="host", start_s=0.0, end_s=1.0),)
    page = render_report(ReportData(run="r", spans=spans))
    assert f'class="k{looks} mark"' in page


def test_twenty_thousand_spans_are_gathered_into_few_marks() -> None:
    data = sample_report(jobs=2, tasks=50, rounds=10, batch=10)
    page = render_report(data)
    drawn = page.count('class="k') + page.count("gathered")
    assert len(data.spans) >= 20_000
    assert drawn < 6_000
    assert len(page) < 4_000_000


def test_usage_counts_slots_and_waiting() -> None:
    spans = (
        ResourceSpan(
            job="j", task="t", kind="build", resource="host", start_s=0.0, end_s=4.0, slots=2, ready_s=0.0
        ),
        ResourceSpan(job="j", task="t", kind="select", resource="host", start_s=4.0, end_s=6.0, ready_s=1.0),
        ResourceSpan(job="j", task="t", kind="profile", resource="gpu", start_s=9.0, end_s=10.0),
    )
    host, gpu = usage_of(ReportData(run="r", resources=(ResourceInfo(name="host", slots=2),), spans=spans))
    assert (host.busy_s, host.utilisation) == ({"build": 8.0, "select": 2.0}, 0.5)
    assert (host.mean_wait_s, host.longest_wait_s) == (1.5, 3.0)
    assert (gpu.utilisation, gpu.mean_wait_s) == (0.1, None)


def test_a_span_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="no such span"):
        ResourceSpan(job="j", task="t", kind="build", resource="host", start_s=2.0, end_s=1.0)
