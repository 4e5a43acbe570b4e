"""How a recipe begins: a directory named after what is asked, a run that is done or goes on, or a program ejected."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stoker import files
from stoker.errors import ArgumentError
from stoker.recipes import baselines, directory
from stoker.recipes.ejecting import eject, program
from stoker.recipes.progress import say

PROGRAM = "train.py"
# What may differ between two calls that mean the same run.
_ASIDE = ("run", "time_s", "save_every")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a recipe's run is kept, and how it is begun.

    Attributes:
        runs: the directory of all runs.
        name: of this one; from what is asked, if None.
        fresh: begin again, even if there is a run.
        ejected: write the program to this file, and train nothing.
        overwrite: also where that file is already there.
    """

    runs: str = "runs"
    name: str | None = None
    fresh: bool = False
    ejected: str | None = None
    overwrite: bool = False


def begin(
    kind: str, settings: Any, place: Place, read: Iterable[Path], words: Iterable[str]
) -> dict[str, Any] | None:
    """Run the program of a recipe in its directory, unless that has been done.

    Args:
        kind: "table", "text" or "image".
        settings: of the program; `run` is filled in here.
        place: where, and how.
        read: the files that are read: other content is another run.
        words: what the run is called after.

    Returns:
        The result; None if the program was only written.

    Raises:
        ArgumentError: the name is that of another run.
    """
    baselines.demand()
    sign = _sign(settings, read)
    name = place.name or f"{_plain(words)}-{sign[:6]}"
    if name == directory.LATEST:
        raise ArgumentError(f"name={name!r} is reserved: it leads to the last run; give another name")
    if Path(name).name != name or name in (".", ".."):
        raise ArgumentError(f"name={name!r} must be the name of a directory in {place.runs}")
    where = Path(place.runs) / name
    settings = dataclasses.replace(settings, run=str(where))
    if place.ejected is not None:
        eject(kind, settings, place.ejected, overwrite=place.overwrite)
        return None
    if place.fresh:
        shutil.rmtree(where, ignore_errors=True)
    _same(where, sign)
    done = directory.finished(where)
    if done is not None:
        say(f"stoker: {where} has finished training; add --fresh to train again")
        directory.show(done)
        return done
    _write(where, kind, settings, sign)
    say(f"stoker: {where}")
    result: dict[str, Any] = importlib.import_module(f"stoker.recipes.programs.{kind}").main(settings)
    return result


def _sign(settings: Any, read: Iterable[Path]) -> str:
    """What tells one run from another: the settings, and the files as they are."""
    asked = {key: value for key, value in dataclasses.asdict(settings).items() if key not in _ASIDE}
    if not asked.get("missing"):
        # Runs from before this setting go on.
        asked.pop("missing", None)
    state = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in read]
    text = json.dumps([asked, state], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(words: Iterable[str]) -> str:
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", word).strip("-.")[:40] or "data" for word in words)


def _same(where: Path, sign: str) -> None:
    try:
        known = (where / "asked").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return
    if known != sign:
        raise ArgumentError(
            f"{where} holds a run with other settings or data: give another --name, or --fresh to start over"
        )


def _write(where: Path, kind: str, settings: Any, sign: str) -> None:
    try:
        os.makedirs(where, exist_ok=True)
        files.write_atomically(where / PROGRAM, program(kind, settings))
        files.write_atomically(where / "asked", sign + "\n")
    except OSError as error:
        raise ArgumentError(f"{where} cannot be written: {error.strerror}") from None
