"""Files that hold a table, read by what their names end in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from stoker.data import paths as found
from stoker.data.arrow_sources import ParquetFiles
from stoker.data.columns import DataWarning
from stoker.data.csv_files import CsvFiles
from stoker.data.ingest import Source
from stoker.data.json_files import JsonLines
from stoker.errors import ArgumentError

_KINDS = {"csv": found.CSV, "parquet": found.PARQUET, "jsonl": found.JSONL}


def table_files(
    paths: Any, sep: str, encoding: str, missing: tuple[str, ...] = ()
) -> tuple[str, Source, list[Path]]:
    """The format, the source and the files: those that fit, or what the folder holds most of, which is said.

    Raises:
        ArgumentError: nothing is there that a table reader reads.
    """
    everything = tuple(suffix for suffixes in _KINDS.values() for suffix in suffixes)
    files = found.files(paths, everything)
    counted = {
        kind: [f for f in files if f.name.lower().endswith(suffixes)] for kind, suffixes in _KINDS.items()
    }
    kind = max(counted, key=lambda one: len(counted[one]))
    chosen = counted[kind]
    if not chosen:
        raise ArgumentError(f"{paths} is not a table Stoker can read: give {', '.join(everything)}")
    _tell_of_others(paths, kind, counted)
    if kind == "csv":
        return kind, CsvFiles(chosen, sep, encoding, missing), chosen
    if kind == "parquet":
        return kind, ParquetFiles(chosen, missing), chosen
    return kind, JsonLines(chosen, chosen=True, missing=missing), chosen


def _tell_of_others(paths: Any, kind: str, counted: dict[str, list[Path]]) -> None:
    """Say what is not read: half of the data may be in it."""
    others = [file for other, files in counted.items() if other != kind for file in files]
    if others:
        warnings.warn(
            f"{paths} holds files of several kinds: {found.spoken(counted[kind])} {_be(counted[kind])} read, "
            f"{found.spoken(others)} {_be(others)} not; give a glob, such as {others[0].with_stem('*')}, to read those",
            DataWarning,
            stacklevel=2,
        )


def _be(files: list[Path]) -> str:
    return "is" if len(files) == 1 else "are"
