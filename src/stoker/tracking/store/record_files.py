"""Records as files, `.stoker/runs/<id>.json`. A file is replaced as a whole, so a reader never sees half a record."""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import time
import zlib
from pathlib import Path

from stoker.errors import RecordError, UsageError
from stoker.files import RUNS, make_private_directory, open_private, tighten, write_atomically
from stoker.records import SCHEMA, Damaged, ProfilerWindow, Record, plain

DIRECTORY = RUNS
# The suffix of the id of a job's own record, stored beside those of its workers.
OF_JOB = "-job"
# Names the newest run, wherever a run is asked for.
LATEST = "latest"
# An id becomes a file name, so it must have no separators, not be hidden, and not lead elsewhere.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def new_id() -> str:
    """Make an id that sorts by time and does not collide: `20261115-210754-3fa91c07`."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


def is_id(text: str) -> bool:
    """Return whether this can be a run's id.

    An id has at most 200 letters, digits, `_`, `-` and `.`, and does not start with `.` or `-`.
    """
    return _ID.fullmatch(text) is not None


def path_of(run_id: str, directory: Path = DIRECTORY) -> Path:
    """Return the path of a run's record.

    Raises:
        RecordError: this cannot be the id of a run.
    """
    if not is_id(run_id):
        raise RecordError(f"{run_id!r} is not the id of a run: `stoker runs` lists them")
    return directory / f"{run_id}.json"


def prepare(directory: Path = DIRECTORY) -> None:
    """Make sure that a record can be written, before the program starts."""
    try:
        make_private_directory(directory)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"cannot write to {directory} ({error.strerror}): make it writable, or run from another directory"
        ) from None


def write(record: Record, path: Path) -> None:
    """Write a record completely or not at all; make its directory again if the program has deleted it."""
    text = json.dumps(record.to_json())
    try:
        write_atomically(path, text, private=True)
    except FileNotFoundError:
        make_private_directory(path.parent)
        write_atomically(path, text, private=True)


def read(path: Path) -> Record:
    """Read a record.

    Raises:
        RecordError: the record is missing, damaged, from a newer Stoker, or no record at all.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"no record at {path}: `stoker runs` lists what there is") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"the record {path} cannot be read ({error}): it is damaged; delete it") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int):
        raise RecordError(f"{path} is not a record of Stoker: `stoker runs` lists what there is")
    if schema != SCHEMA:
        raise RecordError(
            f"the record {path} has schema {schema!r}, this Stoker reads {SCHEMA}: update Stoker"
        )
    try:
        return Record.from_json(data)
    except Damaged as error:
        raise RecordError(f"the record {path} is damaged ({error}): delete it") from None


def events_path_of(path: Path) -> Path:
    """Return the path of a run's profiler events, beside its record."""
    return path.with_name(path.name.removesuffix(".json") + ".events.gz")


def steps_path_of(path: Path) -> Path:
    """Return the path of the steps that `stoker run --keep-step` keeps, beside the run's record."""
    return path.with_name(path.name.removesuffix(".json") + ".steps.zip")


def append_events(windows: list[ProfilerWindow], path: Path) -> None:
    """Append windows of profiler events to those of a record, one line each."""
    text = "".join(json.dumps(plain(window), separators=(",", ":")) + "\n" for window in windows)
    place = events_path_of(path)
    tighten(place)
    with open(place, "ab", opener=open_private) as file:
        file.write(gzip.compress(text.encode("utf-8"), compresslevel=3))


def read_events(path: Path) -> list[ProfilerWindow]:
    """Read the profiler events of a record, up to the first damaged line; an empty list if there are none."""
    windows: list[ProfilerWindow] = []
    try:
        with gzip.open(events_path_of(path), "rt", encoding="utf-8") as lines:
            windows.extend(ProfilerWindow.from_json(json.loads(line)) for line in lines)
    except (OSError, EOFError, ValueError, zlib.error):
        # A killed program leaves half a line; everything before it is good.
        return windows
    return windows


def ids(directory: Path = DIRECTORY) -> list[str]:
    """Return the ids of all records, oldest first."""
    return sorted(path.stem for path in directory.glob("*.json") if is_id(path.stem) and path.is_file())


def describe_matches(text: str, count: int) -> str:
    """Say what is wrong if this text, which should name one run, names none or several."""
    return f"{count} runs whose ids begin with {text!r}" if count else f"no run with id {text!r}"


def resolve(run_id: str | None, directory: Path = DIRECTORY) -> Path:
    """Find a record by the run's id, a unique start of it, or a file name; the last record if None or `latest`."""
    known = ids(directory)
    if run_id is None or run_id == LATEST:
        if not known:
            raise RecordError(f"no runs in {directory}: start one with `stoker run train.py`")
        return path_of(known[-1], directory)
    if run_id.endswith(".json") and Path(run_id).exists():
        return Path(run_id)
    # The ids of a job's workers start with the job's id.
    named = [name for name in (run_id, f"{run_id}{OF_JOB}") if name in known]
    matches = named[:1] or [name for name in known if name.startswith(run_id)]
    if len(matches) != 1:
        raise RecordError(
            f"{describe_matches(run_id, len(matches))} in {directory}: `stoker runs` lists them"
        )
    return path_of(matches[0], directory)
