"""Begin a recipe: start a run, resume one, show one that is finished, or eject the program."""

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

from stoker import files
from stoker.errors import ArgumentError
from stoker.recipes import baselines, directory
from stoker.recipes.arguments import RunRequest
from stoker.recipes.budget import Budget
from stoker.recipes.ejecting import Settings, eject, program
from stoker.recipes.progress import say
from stoker.recipes.scores import Result

PROGRAM = "train.py"
# Settings that may differ between two calls for the same run.
_ASIDE = ("run", "time_s", "save_every", "left_out")


def begin(
    kind: str, settings: Settings, request: RunRequest, read: Iterable[Path], words: Iterable[str]
) -> Result | None:
    """Run the program of a recipe in its directory, unless the run is finished.

    Args:
        kind: "table", "text" or "image".
        settings: the settings of the program; `run` and `epochs` are filled in here.
        request: how to train, and where.
        read: the files that are read; if their content differs, it is another run.
        words: the words after which the run is named.

    Returns:
        The result; None if the program was only written.

    Raises:
        ArgumentError: the name is taken by another run, or reserved.
    """
    baselines.check_installed()
    if request.epochs is not None:
        settings = dataclasses.replace(settings, epochs=request.epochs)
    sign = _sign(settings, read)
    name = request.name or f"{_make_file_name(words)}-{sign[:6]}"
    if name == directory.LATEST:
        raise ArgumentError(f"name={name!r} is reserved for the link to the last run: give another name")
    if Path(name).name != name or name in (".", ".."):
        raise ArgumentError(
            f"name={name!r} must be the name of a directory in {request.runs}, without slashes"
        )
    where = Path(request.runs) / name
    settings = dataclasses.replace(settings, run=str(where))
    if request.eject is not None:
        eject(kind, settings, request.eject, overwrite=request.overwrite)
        return None
    if request.fresh:
        shutil.rmtree(where, ignore_errors=True)
    _check_same(where, sign)
    done = directory.read_finished(where)
    if done is not None:
        say(f"stoker: {where} has finished training; add --fresh to train again")
        directory.show(done)
        return done
    _write(where, kind, settings, sign)
    say(f"stoker: {where}")
    result: Result = importlib.import_module(f"stoker.recipes.programs.{kind}").main(
        settings, Budget(request.time_s, request.started_ns)
    )
    return result


def _sign(settings: Settings, read: Iterable[Path]) -> str:
    """Return a hash of the settings and of the state of the files, which identifies a run."""
    asked = {key: value for key, value in dataclasses.asdict(settings).items() if key not in _ASIDE}
    # Leave out the defaults of these settings, so that runs from before they existed can still be resumed.
    for name, usual in (("missing", ()), ("types", ()), ("only", None), ("lenient", True)):
        if asked.get(name) == usual:
            asked.pop(name, None)
    state = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in read]
    text = json.dumps([asked, state], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _make_file_name(words: Iterable[str]) -> str:
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "-", word).strip("-.")[:40] or "data" for word in words)


def _check_same(where: Path, sign: str) -> None:
    try:
        known = (where / "asked").read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return
    if known != sign:
        raise ArgumentError(
            f"{where} holds a run with different settings or data: give another --name, or --fresh to start over"
        )


def _write(where: Path, kind: str, settings: Settings, sign: str) -> None:
    try:
        os.makedirs(where, exist_ok=True)
        files.write_atomically(where / PROGRAM, program(kind, settings))
        files.write_atomically(where / "asked", sign + "\n")
    except OSError as error:
        raise ArgumentError(f"{where} cannot be written: {error.strerror}") from None
