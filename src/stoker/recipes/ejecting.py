"""Write a recipe's program to a file for the user: complete, with its settings filled in, giving the same weights."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from stoker import files
from stoker.errors import UsageError, check_local_path

_LINE = 80
# The `Settings` of one of the programs. They share no base, because each program is complete.
Settings: TypeAlias = Any
_LAST = '\n\nif __name__ == "__main__":\n'


def program(kind: str, settings: Settings) -> str:
    """Return the source of a program with these settings at its end.

    Args:
        kind: "table", "text" or "image".
        settings: a `Settings` of that program.
    """
    source = resources.files("stoker.recipes.programs").joinpath(f"{kind}.py").read_text(encoding="utf-8")
    body, _ = source.split(_LAST)
    chosen = [
        f"            {field.name}={_literal(getattr(settings, field.name))},"
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) != field.default
    ]
    call = "\n".join(["    main(", "        Settings(", *chosen, "        )", "    )"])
    return f"{body}{_LAST}{call}\n"


def _literal(value: object) -> str:
    """Format a value as Python source."""
    if isinstance(value, tuple) and len(repr(value)) > _LINE:
        return "\n".join(["(", *(f"                {_literal(one)}," for one in value), "            )"])
    if isinstance(value, tuple):
        return f"({', '.join(_literal(one) for one in value)}{',' if len(value) == 1 else ''})"
    return (
        f'"{value}"'
        if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
        else repr(value)
    )


def eject(kind: str, settings: Settings, path: str, *, overwrite: bool = False) -> None:
    """Write the program. Its run is kept in `runs/` under the name of the file.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    check_local_path(path)
    target = Path(path)
    if target.exists() and not overwrite:
        raise UsageError(f"{path} exists; --force replaces it")
    runs = Path(settings.run).parent
    try:
        files.write_atomically(
            target, program(kind, dataclasses.replace(settings, run=str(runs / target.stem)))
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
