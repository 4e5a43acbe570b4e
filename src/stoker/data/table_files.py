"""Find the files of a table; their names give its format."""

from __future__ import annotations

import warnings
from pathlib import Path

from stoker.data import paths as found
from stoker.data.arrow_sources import ParquetFiles
from stoker.data.columns import DataWarning
from stoker.data.csv_files import CsvFiles
from stoker.data.ingest import TableSource
from stoker.data.json_files import JsonLines
from stoker.errors import ArgumentError

_KINDS = {"csv": found.CSV, "parquet": found.PARQUET, "jsonl": found.JSONL}


def table_files(
    paths: found.Paths,
    sep: str,
    encoding: str,
    missing: tuple[str, ...] = (),
    lenient: bool = False,
    *,
    cache_bytes: int | None = None,
) -> tuple[str, TableSource, list[Path]]:
    """Return the format, the source and the files; of several formats the most common one, with a warning.

    Raises:
        ArgumentError: there is no table.
    """
    everything = tuple(suffix for suffixes in _KINDS.values() for suffix in suffixes)
    files = found.files(paths, everything, cache_bytes)
    counted = {
        kind: [f for f in files if f.name.lower().endswith(suffixes)] for kind, suffixes in _KINDS.items()
    }
    kind = max(counted, key=lambda one: len(counted[one]))
    chosen = counted[kind]
    if not chosen:
        raise ArgumentError(f"{paths} is not a table Stoker can read: give {', '.join(everything)}")
    _warn_of_others(paths, kind, counted)
    if kind == "csv":
        return kind, CsvFiles(chosen, sep, encoding, missing, lenient), chosen
    if kind == "parquet":
        return kind, ParquetFiles(chosen, missing), chosen
    return kind, JsonLines(chosen, chosen=True, missing=missing, lenient=lenient), chosen


def _warn_of_others(paths: found.Paths, kind: str, counted: dict[str, list[Path]]) -> None:
    """Warn of the files that are not read, as half of the data may be in them."""
    others = [file for other, files in counted.items() if other != kind for file in files]
    if others:
        warnings.warn(
            f"{paths} holds files of several kinds: {found.name_files(counted[kind])} "
            f"{_choose_be(counted[kind])} read, {found.name_files(others)} {_choose_be(others)} not; "
            f"give a glob, such as {others[0].with_stem('*')}, to read those",
            DataWarning,
            stacklevel=2,
        )


def _choose_be(files: list[Path]) -> str:
    return "is" if len(files) == 1 else "are"
