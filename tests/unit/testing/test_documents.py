"""How commands are found in pages."""

from pathlib import Path

from support.documents import Block, blocks_of

PAGE = """\
# A page

<!-- test: "zoo:big" -> "net.onnx", "--trials 500" -> "--trials 5" -->
```console
$ tuneloom tune zoo:big \\
    --trials 500
tuned
$ tuneloom runs
```

<!-- test: not run: takes a day -->
```console
$ tuneloom tune zoo:big --trials 500000
```

<!-- test: exits with 2 -->
```console
$ tuneloom tune zoo:big --trials 0
```

```python
print("zoo:big")
```

```toml
[[jobs]]
```
"""


def test_commands_are_found_with_their_cheap_words_and_exit_codes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    tune, wrong, program = blocks_of(page)
    assert tune.line == 4
    assert tune.commands == ("tuneloom tune net.onnx      --trials 5", "tuneloom runs")
    assert wrong == Block(
        line=17, kind="console", commands=("tuneloom tune net.onnx --trials 0",), exit_code=2
    )
    assert program.kind == "python" and program.commands == ('print("net.onnx")\n',)


def test_every_line_of_a_shell_block_is_a_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\ntuneloom runs\n\ntuneloom zoo\n```\n")
    (block,) = blocks_of(page)
    assert block.commands == ("tuneloom runs", "tuneloom zoo")


def test_words_broken_over_lines_are_joined_before_they_are_exchanged(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '<!-- test: "--trials 500" -> "--trials 5" -->\n```console\n$ tune \\\n  --trials 500\n```\n'
    )
    (block,) = blocks_of(page)
    assert block.commands == ("tune    --trials 5",)
