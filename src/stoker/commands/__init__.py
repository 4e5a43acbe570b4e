"""The command line: one module per verb, found by its file name, imported only when it is the one asked for.

A verb's module has a docstring (its help), `configure(parser)` and `run(args) -> exit code`. This is the only
package that wires the stages together.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from stoker.errors import StokerError
from stoker.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run `stoker` with these arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser(arguments).parse_args(arguments)
        return int(args.run(args))
    except StokerError as error:
        print(f"stoker: {error}", file=sys.stderr)
        return error.exit_code


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stoker", description="Keeps TensorFlow programs at full throughput."
    )
    parser.add_argument("--version", action="version", version=f"stoker {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name in _wanted(arguments):
        module = importlib.import_module(f"stoker.commands.{name}")
        help_text = (module.__doc__ or "").strip()
        verb = verbs.add_parser(
            name.replace("_", "-"),
            help=help_text.splitlines()[0],
            description=help_text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(verb)
        verb.set_defaults(run=module.run)
    return parser


def _wanted(arguments: list[str]) -> list[str]:
    """The verb on the command line alone when there is one (its start-up must be quick), else all of them."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    asked = arguments[0].replace("-", "_") if arguments else ""
    return [asked] if asked in names else names


__all__ = ["main"]
