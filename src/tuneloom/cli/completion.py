"""`tuneloom completion`: a script that completes commands and options in a shell.

The script is written once and holds all words, so pressing Tab starts no interpreter.
"""

import argparse
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tuneloom.cli.commands import GROUPS
from tuneloom.cli.parsing import Commands, add_command

DESCRIPTION = """\
Print a script that completes commands and options in your shell. To use it in every new shell:

  tuneloom completion bash >> ~/.bashrc
  tuneloom completion zsh >> ~/.zshrc
  tuneloom completion fish > ~/.config/fish/completions/tuneloom.fish
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completable:
    """What may follow some commands: further commands and options with their help, values of options."""

    path: tuple[str, ...]
    commands: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "completion", DESCRIPTION, print_script)
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell to write for")


def print_script(options: argparse.Namespace) -> int:
    """Write the script for a shell to standard output."""
    from tuneloom.cli.main import parser

    print(_SCRIPTS[options.shell](list(places(parser()))))
    return 0


def places(top: argparse.ArgumentParser) -> Iterator[Completable]:
    """Every place of the command line, with everything that may stand there."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for module in GROUPS:
                importlib.import_module(f"tuneloom.cli.{module}").add_parser(action)
    yield from _places(top, ())


def _places(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Completable]:
    commands: dict[str, str] = {}
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            commands |= {name: helps.get(name, "") for name in action.choices}
            for name, inner in action.choices.items():
                yield from _places(inner, (*path, name))
        for name in action.option_strings:
            options[name] = _one_line(action.help)
            if action.choices is not None:
                values[name] = tuple(map(str, action.choices))
    yield Completable(path=path, commands=commands, options=options, values=values)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split()).replace("'", "’")


def _bash(found: list[Completable]) -> str:
    paths = "|".join("/".join(("", *place.path)) for place in found if place.path)
    words = "\n".join(
        f"    '{'/'.join(('', *place.path)) if place.path else ''}') words='{_words(place)}' ;;"
        for place in found
    )
    values = "\n".join(
        f"    '{'/'.join(('', *place.path)) if place.path else ''} {option}') words='{' '.join(names)}' ;;"
        for place in found
        for option, names in place.values.items()
    )
    return f"""\
_tuneloom() {{
  local path='' word words='' current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path/$word" in
      {paths}) path="$path/$word" ;;
    esac
  done
  case "$path" in
{words}
  esac
  case "$path $before" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tuneloom tuneloom"""


def _words(place: Completable) -> str:
    return " ".join((*place.commands, *place.options))


def _zsh(found: list[Completable]) -> str:
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{_bash(found)}"


def _fish(found: list[Completable]) -> str:
    lines = []
    for place in found:
        seen = " and ".join(f"__fish_seen_subcommand_from {name}" for name in place.path)
        condition = f"-n '{seen or '__fish_use_subcommand'}'"
        lines += [
            f"complete -c tuneloom {condition} -a {name} -d '{_one_line(text)}'"
            for name, text in place.commands.items()
        ]
        for name, text in place.options.items():
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            given = f" -x -a '{' '.join(place.values[name])}'" if name in place.values else ""
            lines.append(f"complete -c tuneloom {condition} {kind}{given} -d '{text}'")
    return "\n".join(lines)


_SCRIPTS: dict[str, Callable[[list[Completable]], str]] = {"bash": _bash, "fish": _fish, "zsh": _zsh}
