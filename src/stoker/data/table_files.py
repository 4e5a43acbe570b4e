"""Files that hold a table, read by what their names end in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stoker.data import paths as found
from stoker.data.arrow_sources import JsonLines, ParquetFiles
from stoker.data.csv_files import CsvFiles
from stoker.data.ingest import Source
from stoker.errors import ArgumentError

_KINDS = {"csv": found.CSV, "parquet": found.PARQUET, "jsonl": found.JSONL}


def table_files(paths: Any, sep: str, encoding: str) -> tuple[str, Source, list[Path]]:
    """The format, the source and the files: those that fit, or what the folder holds most of.

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
        raise ArgumentError(f"{paths} is no table that can be read: give {', '.join(everything)}")
    if kind == "csv":
        return kind, CsvFiles(chosen, sep, encoding), chosen
    return kind, ParquetFiles(chosen) if kind == "parquet" else JsonLines(chosen, chosen=True), chosen
