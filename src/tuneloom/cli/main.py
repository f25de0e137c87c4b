"""The program `tuneloom`: reads the command line, prints one line when something is wrong."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tuneloom import __version__
from tuneloom.cli.commands import CommandsAction
from tuneloom.errors import TuneloomError

DESCRIPTION = """\
Tune neural networks for the hardware they run on.

  tuneloom tune zoo:squeezenet --trials 500 --out fast/   tune a model, write a bundle
  tuneloom evaluate fast/                                 time the bundle
  tuneloom report last -o report.html                     write a report about the run
"""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OneLineParser(argparse.ArgumentParser):
    """Says in one line what is wrong with a command line, and where to read more."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tuneloom: {message}; see `{self.prog} --help`\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, or says what kind of thing went wrong."""
    options = parser().parse_args(arguments)
    try:
        code: int = options.func(options)
        sys.stdout.flush()
        return code
    except TuneloomError as error:
        if options.debug:
            raise
        print(f"tuneloom: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _forget_output()
        return 0
    except OSError as error:
        if error.errno not in _FULL or options.debug:
            raise
        _forget_output()
        place = error.filename or "the output"
        print(f"tuneloom: can't write {place}: {error.strerror}; make room there", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tuneloom: interrupted", file=sys.stderr)
        return 130


def _forget_output() -> None:
    """Nobody can take what is left to print; don't try again at the end of the program."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = OneLineParser(
        prog="tuneloom", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"tuneloom {__version__}")
    top.add_argument("--server", metavar="URL", help="use the jobs of this server instead of local runs")
    top.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    top.add_subparsers(metavar="COMMAND", required=True, action=CommandsAction)
    return top


if __name__ == "__main__":
    sys.exit(main())
