"""Write docs/commands.md from the commands themselves: their docstrings, arguments and options.

python tools/make_command_reference.py            # write it
python tools/make_command_reference.py --check    # fail if it is out of date
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

from stoker import cli as commands

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
_HEAD = """# Commands

Generated from the commands themselves by `tools/make_command_reference.py`; `stoker VERB --help` says the same.
Errors are one line on stderr with exit code 2. `stoker` alone lists the commands by task, and `stoker --version` prints
the version. For completion in bash or zsh: `pip install "stoker[completion]"`, then put
`eval "$(register-python-argcomplete stoker)"` into the shell's start-up file.
"""


def main() -> int:
    """Write the page, or compare it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is out of date: run python tools/make_command_reference.py", file=sys.stderr)
    return 1


def page() -> str:
    """The whole page; verbs in alphabetical order."""
    names = sorted(m.name for m in pkgutil.iter_modules(commands.__path__) if not m.name.startswith("_"))
    return "\n".join([_HEAD, *(section(name) for name in names)])


def section(name: str) -> str:
    """One verb: its docstring, then a table of what it takes."""
    module = importlib.import_module(f"stoker.cli.{name}")
    parser = argparse.ArgumentParser(add_help=False)
    module.configure(parser)
    lines = [f"## stoker {name.replace('_', '-')}", "", *_prose((module.__doc__ or "").strip()), ""]
    if any(action.help != argparse.SUPPRESS for action in parser._actions):
        lines += [*_table(parser), ""]
    for group in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        for inner, made in group.choices.items():
            lines += [f"### stoker {name} {inner}", "", *_prose((made.description or "").strip()), ""]
            lines += [*_table(made), ""]
    return "\n".join(lines)


def _table(parser: argparse.ArgumentParser) -> list[str]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    shown = [action for action in actions if not isinstance(action, argparse._HelpAction)]
    return ["| | |", "|---|---|", *(f"| {_names(a)} | {_help(a)} |" for a in shown)]


def _prose(text: str) -> list[str]:
    """The docstring as Markdown: lines that are commands, indented or not, become one block of code."""
    lines: list[str] = []
    for line in text.splitlines():
        is_command = line.lstrip().startswith(("stoker ", "cat ")) and not line.startswith("Stoker")
        lines.append(f"    {line.strip()}" if is_command else line)
    return lines


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    if action.metavar is None and action.nargs == argparse.REMAINDER:
        return "..."
    return str(action.metavar or action.dest.upper())


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%").replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
