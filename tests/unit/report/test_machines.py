"""The resources of several machines in a report: grouped, and marked where they were lost."""

from dataclasses import replace

from support.samples.report import sample_report
from tuneloom.app.reports.notes import resources_of
from tuneloom.report.data import ResourceInfo
from tuneloom.report.sections.gantt import gantt
from tuneloom.report.sections.usage import usage_of, usage_section

NOTE = [
    {"name": "a/host", "slots": 2, "machine": "a", "joined_s": 0.0, "away": []},
    {"name": "b/host", "slots": 2, "machine": "b", "joined_s": 4.0, "away": []},
    {
        "name": "a/cpu0",
        "slots": 1,
        "machine": "a",
        "device_key": "cpu",
        "joined_s": 0.0,
        "away": [[10.0, 20.0], [30.0, None]],
        "why_away": "its agent died",
    },
]


def test_resources_of_one_machine_come_together() -> None:
    assert [each.name for each in resources_of(NOTE)] == ["a/host", "a/cpu0", "b/host"]


def test_a_resource_knows_when_it_was_missing() -> None:
    _, cpu, late = resources_of(NOTE)
    assert cpu.missing(40.0) == [(10.0, 20.0), (30.0, 40.0)]
    assert cpu.missing(15.0) == [(10.0, 15.0)]
    assert late.missing(40.0) == [(0.0, 4.0)]


def test_utilisation_counts_only_the_time_that_a_resource_was_there() -> None:
    data = replace(sample_report(), resources=resources_of(NOTE), seconds=40.0)
    usage = {each.resource.name: each for each in usage_of(data)}
    end_s = max(40.0, *(span.end_s for span in data.spans))
    assert usage["a/cpu0"].of_s == end_s - 10.0 - (end_s - 30.0)


def test_machines_have_headings_and_losses_are_told_and_marked() -> None:
    data = replace(sample_report(), resources=resources_of(NOTE))
    table, chart = str(usage_section(data)), str(gantt(data))
    assert table.count('class="group"') >= 2
    assert "lost 2 times (its agent died), not back" in table
    assert chart.count('class="away"') == 3 and "lost: its agent died" in chart and "not there yet" in chart


def test_one_machine_needs_no_heading() -> None:
    data = replace(sample_report(), resources=(ResourceInfo(name="host", machine="local"),), spans=())
    assert 'class="group"' not in str(usage_section(data))
