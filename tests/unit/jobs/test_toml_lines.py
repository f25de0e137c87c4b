"""Lines of keys and tables are found, whatever stands between them."""

import tomllib

import pytest

from tuneloom.app.requests.toml import TomlLines

TEXT = '''\
# jobs = 1
[defaults]
trials = 10   # [not a header]
note = """
[[jobs]]
model = "inside a string"
"""
"quoted key" = 1

[[jobs]]
model = 'a # b'
shapes.input = [
  1,
  3, # ]
]

[[jobs]]
model = "c = \\"["
[jobs.shapes]
input = [2]
'''


def test_the_text_is_toml() -> None:
    assert len(tomllib.loads(TEXT)["jobs"]) == 2


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("defaults",), 2),
        (("defaults", "trials"), 3),
        (("defaults", "note"), 4),
        (("defaults", "quoted key"), 8),
        (("jobs", 0), 10),
        (("jobs", 0, "model"), 11),
        (("jobs", 0, "shapes"), 12),
        (("jobs", 0, "shapes", "input"), 12),
        (("jobs", 1), 17),
        (("jobs", 1, "model"), 18),
        (("jobs", 1, "shapes", "input"), 20),
    ],
)
def test_every_key_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    assert TomlLines(TEXT).of(*path) == line


def test_a_missing_key_stands_where_its_table_begins() -> None:
    assert TomlLines(TEXT).of("jobs", 1, "nothing") == 17


def test_inline_jobs_stand_where_their_list_begins() -> None:
    assert TomlLines('\njobs = [\n  { model = "a" },\n]\n').of("jobs", 0, "model") == 2
