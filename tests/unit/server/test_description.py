"""The page about the API says what the schema says."""

from pathlib import Path

from tuneloom.server.describing import page


def test_the_page_is_the_one_that_the_schema_makes() -> None:
    written = Path(__file__).parents[3].joinpath("docs", "api.md").read_text()
    assert written == page(), "run: python -m tuneloom.server.describing > docs/api.md"
