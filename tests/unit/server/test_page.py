"""The page's files: served to anybody, strictly, and complete."""

import re

import pytest

from tuneloom.server.page.serving import ADDRESSES, FILES, page_files

from .conftest import Served

SCRIPTS = {name: file.content.decode() for name, file in page_files().items() if name.endswith(".js")}
IMPORT = re.compile(r"""(?:from|import\()\s*"(\.{1,2}/[^"]+)\"""")


@pytest.mark.parametrize("address", [address.replace("{job}", "amber-heron-42") for address in ADDRESSES])
def test_every_address_answers_with_the_document_and_a_strict_policy(served: Served, address: str) -> None:
    answer = served.client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_the_document_has_no_inline_script_or_style_and_names_no_other_host(served: Served) -> None:
    text = served.client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    assert "//" not in re.sub(r"<!doctype html>", "", text)


def test_every_file_that_the_document_names_is_there(served: Served) -> None:
    text = served.client.get("/").text
    named = re.findall(rf'(?:href|src)="({FILES}/[^"]+)"', text)
    assert any(address.endswith(".js") for address in named) and any(one.endswith(".css") for one in named)
    for address in named:
        assert served.client.get(address).status_code == 200, address


def test_a_file_that_the_browser_has_is_not_sent_again(served: Served) -> None:
    first = served.client.get(f"{FILES}/main.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = served.client.get(f"{FILES}/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name", ["../building.py", "%2e%2e/building.py", "/etc/passwd", "", "views", "none.js"]
)
def test_nothing_but_the_files_of_the_page_is_served(served: Served, name: str) -> None:
    assert served.client.get(f"{FILES}/{name}").status_code == 404


def test_imports_of_scripts_are_found() -> None:
    assert any(IMPORT.findall(SCRIPTS["main.js"]))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_only_what_is_there(name: str) -> None:
    folder = name.rpartition("/")[0]
    for wanted in IMPORT.findall(SCRIPTS[name]):
        parts = [*folder.split("/")] if folder else []
        for part in wanted.split("/"):
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        assert "/".join(parts) in SCRIPTS, (name, wanted)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
    assert re.search(forbidden, SCRIPTS[name]) is None
