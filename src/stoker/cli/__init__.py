"""The command line: one module per verb, found by its file name, imported only when it is the one asked for.

A verb's module has a docstring (its help), `configure(parser)` and `run(args) -> exit code`. This is the only
package that wires the stages together.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import resources
from typing import NoReturn

from stoker.errors import StokerError, UsageError
from stoker.units import printable
from stoker.version import __version__

# As a shell reports a program that SIGPIPE has ended.
_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run `stoker` with these arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser(arguments).parse_args(arguments)
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except StokerError as error:
        print(f"stoker: {printable(str(error), lines=True)}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever reads (`head`, a pager) has seen enough. Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the whole usage in front of it."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _parser(arguments: list[str]) -> _Parser:
    parser = _Parser(prog="stoker", description="Keeps TensorFlow programs at full throughput.")
    parser.add_argument("--version", action="version", version=f"stoker {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    asked = arguments[0].replace("-", "_") if arguments else ""
    if asked in names:
        _add_verb(verbs, asked)
    else:
        for name in names:
            verbs.add_parser(_typed(name), help=_docstring(name).splitlines()[0])
    return parser


def _add_verb(verbs: argparse._SubParsersAction[_Parser], name: str) -> None:
    """The verb that was asked for: the only one whose module is imported."""
    module = importlib.import_module(f"stoker.cli.{name}")
    verb = verbs.add_parser(
        _typed(name),
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(verb)
    verb.set_defaults(run=module.run)


def _typed(name: str) -> str:
    return name.replace("_", "-")


def _docstring(name: str) -> str:
    """What a verb's module says of itself, without importing it and all it needs."""
    source = resources.files(__name__).joinpath(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or name


__all__ = ["main"]
