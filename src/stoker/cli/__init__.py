"""The command line: one module per verb, found by its file name, and imported only if the verb is the one asked for.

A verb's module has a docstring (its help), `configure(parser)` and `run(args) -> exit code`. This is the only
package that wires the stages together.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, NoReturn

from stoker.errors import StokerError, UsageError, name_extra, suggest
from stoker.printing import print_answer, print_note
from stoker.units import printable
from stoker.version import __version__

# Every verb, grouped by what people want to do.
GROUPS = {
    "Find what is slow": (
        "run",
        "check",
        "fix",
        "lsp",
        "explain",
        "report",
        "compare",
        "whatif",
        "price",
        "memory",
        "software-gpu",
    ),
    "Feed and train": ("train", "launch", "data", "tune"),
    "Serve": ("predict", "evaluate", "export", "serve", "replay", "bundle", "package"),
    "Keep track": ("runs", "ui", "audit"),
}

# The code with which a shell reports a program that SIGPIPE has ended.
_PIPE_CLOSED = 141
# The beginning of argparse's messages, and what is said instead.
_REQUIRED = "the following arguments are required"
_INVALID_CHOICE = re.compile(
    r"(?P<start>.*invalid choice: '(?P<word>.*)') \(choose from (?P<known>.*)\)", re.DOTALL
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `stoker` with these arguments, and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if "_ARGCOMPLETE" in os.environ:
            _complete()
        if not arguments:
            print_answer(_describe_verbs(), end="")
            return 0
        args = _parse(arguments)
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except StokerError as error:
        return _refuse(error)
    except ModuleNotFoundError as error:
        line = name_extra(f"stoker {arguments[0]}", error)
        if line is None:
            raise
        return _refuse(line)
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


def _refuse(error: StokerError) -> int:
    print_note(printable(str(error), lines=True))
    return error.exit_code


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, without the whole usage in front of it."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        misspelled = self._find_unknown_option() if message.startswith(_REQUIRED) else None
        if misspelled is not None:
            # The argument seems to be missing because it was misspelled.
            raise UsageError(
                f"{self.prog} does not know {misspelled}{suggest(misspelled, self._list_options())}"
            )
        choice = _INVALID_CHOICE.fullmatch(message)
        hint = suggest(choice["word"], re.findall(r"[\w.-]+", choice["known"])) if choice else ""
        if choice and hint:
            raise UsageError(f"{choice['start']}{hint}")
        raise UsageError(f"{message}; see {self.prog} --help")

    def _list_options(self) -> list[str]:
        return sorted(set(re.findall(r"(?<![\w-])--[\w-]+", self.format_help())))

    def _find_unknown_option(self) -> str | None:
        """Return the first word that looks like an option and resembles one, but is not the beginning of any."""
        options = self._list_options()
        for word in (word.partition("=")[0] for word in self._words if word.startswith("--")):
            if word == "--":
                break
            if not any(option.startswith(word) for option in options) and suggest(word, options):
                return word
        return None


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser, verb = _make_parser(arguments)
    args: argparse.Namespace
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        options = set(re.findall(r"--[a-z][a-z-]*", verb.format_help()))
        hint = suggest(unknown[0].partition("=")[0], sorted(options))
        raise UsageError(
            f"{verb.prog} does not know {' '.join(unknown)}{hint or f'; see {verb.prog} --help'}"
        )
    return args


def _make_parser(arguments: list[str]) -> tuple[_Parser, _Parser]:
    """Return the parser of `stoker`, and the parser of the verb on the command line, if there is one."""
    parser = _Parser(prog="stoker", usage="stoker VERB ...", formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--version", action="version", version=f"stoker {__version__}")
    verbs = parser.add_subparsers(prog="stoker", metavar="VERB", help=argparse.SUPPRESS, required=True)
    known = list(_list_verbs())
    asked = arguments[0] if arguments else ""
    if asked in known:
        return parser, _add_verb(verbs, asked.replace("-", "_"))
    if asked and not asked.startswith("-"):
        raise UsageError(f"there is no verb {asked!r}{suggest(asked, known) or '; see stoker --help'}")
    for name in known:
        verbs.add_parser(name)
    # Only then, as this reads the source of every verb.
    parser.epilog = _describe_verbs()
    return parser, parser


def _list_verbs() -> Iterator[str]:
    """Yield the names of the verbs' modules, as users type them."""
    return (
        one.name.replace("_", "-") for one in pkgutil.iter_modules(__path__) if not one.name.startswith("_")
    )


def _describe_verbs() -> str:
    """Return every verb and its first line, grouped by what people want to do."""
    lines = ["Stoker keeps TensorFlow programs at full throughput.", ""]
    for title, verbs in GROUPS.items():
        lines += [f"{title}:", *(f"  {verb:<13} {_docstring(verb).splitlines()[0]}" for verb in verbs), ""]
    return "\n".join([*lines, "For more, run `stoker VERB --help`.", ""])


def _complete() -> None:
    """Answer a shell that completes a command (`pip install argcomplete`, docs/commands.md), and exit."""
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()[1:]
    finished = words if os.environ.get("COMP_LINE", " ")[-1].isspace() else words[:-1]
    argcomplete.autocomplete(_make_parser(finished[:1])[0])


def _add_verb(verbs: argparse._SubParsersAction[_Parser], name: str) -> _Parser:
    """Add the verb that was asked for, the only one whose module is imported."""
    module = importlib.import_module(f"stoker.cli.{name}")
    verb = verbs.add_parser(
        name.replace("_", "-"),
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(verb)
    verb.set_defaults(run=module.run)
    return verb


def _docstring(verb: str) -> str:
    """Return the docstring of a verb's module, read without importing it."""
    file = resources.files(__name__).joinpath(f"{verb.replace('-', '_')}.py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or verb


__all__ = ["main"]
