"""A recipe's program as a file of yours: complete, with its settings filled in, giving the same weights."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any

from stoker import files
from stoker.errors import UsageError, check_local_path

_LINE = 80
_LAST = '\n\nif __name__ == "__main__":\n'


def program(kind: str, settings: Any) -> str:
    """The text of a program with these settings in its last line.

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


def _literal(value: Any) -> str:
    """A value as the formatter would have it."""
    if isinstance(value, tuple) and len(repr(value)) > _LINE:
        return "\n".join(["(", *(f"                {_literal(one)}," for one in value), "            )"])
    if isinstance(value, tuple):
        return f"({', '.join(_literal(one) for one in value)}{',' if len(value) == 1 else ''})"
    return (
        f'"{value}"'
        if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}
        else repr(value)
    )


def eject(kind: str, settings: Any, path: str, *, overwrite: bool = False) -> None:
    """Write the program; its run is kept in `runs/` under the name of the file.

    Raises:
        UsageError: the file is there, or cannot be written.
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
