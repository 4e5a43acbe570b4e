"""Describe what a file or folder holds: rows, columns, kinds, missing values, distributions, and reading speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stoker import clock
from stoker.data import paths, statistics
from stoker.data.array_types import Array
from stoker.data.arrow_sources import Unfit
from stoker.data.class_folders import class_folders, list_names
from stoker.data.columns import Column, Restart, from_store
from stoker.data.ingest import TableSource, load_table
from stoker.data.lenient import LENIENT, LenientTable
from stoker.data.store import Store
from stoker.data.table_files import table_files
from stoker.data.text_files import Folders, Lines
from stoker.errors import ArgumentError

# What `stoker data` prints, as JSON.
Survey: TypeAlias = dict[str, Any]
_BINS = 10
# The number of values of a category that are named.
TOP = 10
# How long a survey reads to measure the speed.
SPEED_S = 2.0


_READ = sum((paths.CSV, paths.PARQUET, paths.JSONL, paths.TEXTS, paths.IMAGES, paths.RECORDS, paths.TARS), ())


def survey(path: str, sep: str | None = None, encoding: str = "utf8") -> Survey:
    """Return everything that `stoker data` prints, as JSON.

    Args:
        path: a file, a glob or a folder.
        sep: the separator of CSV files; None to find out.
        encoding: the encoding of CSV and text files.

    Raises:
        ArgumentError: there is no file that any reader reads.
    """
    return {"path": path, **_survey(path, sep, encoding)}


def _survey(path: str, sep: str | None, encoding: str) -> Survey:
    """Return the survey of a folder for each class, or of the most common kind of file."""
    path = str(paths.local_tree(path, _READ))
    root = Path(path)
    if root.is_dir() and class_folders(root):
        if _find_commonest_kind(list_names(root), {"text": paths.TEXTS, "images": paths.IMAGES}) != "text":
            from stoker.data.other_surveys import survey_images

            return survey_images(root)
        folders = Folders(root, encoding)
        return _survey_table("text", folders, [encoding], [file.size for file in folders.files])
    tables = paths.CSV + paths.PARQUET + paths.JSONL
    kinds = {"table": tables, "text": paths.TEXTS, "records": paths.RECORDS, "tar": paths.TARS}
    files = paths.files(path, sum(kinds.values(), ()))
    kind = _find_commonest_kind([file.name for file in files], kinds)
    if kind in ("records", "tar"):
        from stoker.data.other_surveys import survey_records, survey_tar

        return survey_records(files) if kind == "records" else survey_tar(files)
    if kind == "text":
        return _survey_table("text", Lines(files, encoding), [encoding], _sizes(files))
    sep = sep or ("\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ",")
    # Read the table as the recipe does.
    kind, source, files = table_files(path, sep, encoding, lenient=True)
    reading = [*([sep, encoding] if kind == "csv" else []), LENIENT, None, False, None]
    return _survey_table(kind, LenientTable(source), reading, _sizes(files))


def _find_commonest_kind(names: list[str], kinds: dict[str, tuple[str, ...]]) -> str | None:
    """Return the most common kind of file; None if there is no file of any kind."""
    counted = Counter(k for name in names for k, suffixes in kinds.items() if name.lower().endswith(suffixes))
    return max(counted, key=lambda kind: counted[kind], default=None)


def _sizes(files: list[Path]) -> list[int]:
    return [file.stat().st_size for file in files]


def _survey_table(kind: str, source: TableSource, reading: list[Any], sizes: list[int]) -> Survey:
    described = source.columns()
    wanted = [column for column in described if not isinstance(column, Unfit)]
    if not wanted:
        raise ArgumentError(f"{source.name} has no column of numbers or text")
    store = load_table(source, wanted, reading, None)
    columns = from_store(store)
    rows_per_s = _measure_speed(source, columns)
    found = store.meta.get("found", {})
    return {
        "format": kind,
        "files": len(sizes),
        "bytes": sum(sizes),
        "rows": store.rows,
        "cache_bytes": store.bytes,
        "rows_per_s": round(rows_per_s),
        "bytes_per_s": round(rows_per_s * sum(sizes) / store.rows),
        "columns": [
            _survey_column(store, columns, column) | _describe_reading(column.name, found)
            for column in columns
        ],
        "notes": list(found.get("notes", ())),
        "left_out": [column.name for column in described if isinstance(column, Unfit)],
    }


def _describe_reading(name: str, found: Mapping[str, Any]) -> Survey:
    """Say how the cells of a column are written, and how many could not be read; empty if they are as usual."""
    about: Survey = {"how": how} if (how := found.get("how", {}).get(name)) else {}
    return about | ({"unreadable": count} if (count := found.get("bad", {}).get(name)) else {})


def _measure_speed(source: TableSource, columns: list[Column]) -> float:
    """Return the rows read and parsed per second, from the first seconds of a pass."""
    start, rows, seconds = clock.real_ns(), 0, 0.0
    try:
        for block in source.blocks(columns):
            rows += len(block)
            seconds = (clock.real_ns() - start) / 1e9
            if seconds > SPEED_S:
                break
    except Restart:
        return _measure_speed(source, columns)
    return rows / max(seconds, 1e-9)


def _survey_column(store: Store, columns: list[Column], column: Column) -> Survey:
    about: Survey = {
        "name": column.name,
        "kind": column.kind,
        "missing": int(store.meta["missing"][column.name]),
    }
    about |= {name: value for name in ("unit", "doubt", "note") if (value := getattr(column, name))}
    if column.kind == "text":
        number = [one.name for one in columns].index(column.name)
        lengths = np.diff(store.array(f"ends-{number}"))
        return {**about, "characters": spread(lengths)}
    place = statistics.places(columns)[column.dtype].index(column.name)
    values = store.array(column.dtype)[:, place]
    if column.kind == "category":
        counts = np.bincount(values + 1, minlength=1)[1:]
        words = store.meta["values"].get(column.name, [])
        # The empty word stands for a missing value.
        about["missing"] += sum(int(counts[code]) for code, word in enumerate(words) if not word)
        order = sorted(
            (code for code, word in enumerate(words) if word), key=lambda code: (-counts[code], words[code])
        )
        return {**about, "different": len(order), "top": [[words[i], int(counts[i])] for i in order[:TOP]]}
    return {**about, "values": spread(values)}


def spread(values: Array | list[int]) -> Survey | None:
    """Return the least, the largest and the mean value, and a histogram of ten bins; None without values."""
    there = np.asarray(values)
    there = there[np.isfinite(there)] if there.dtype.kind == "f" else there
    if not len(there):
        return None
    low, high = there.min(), there.max()
    # Subtract the least value, so that the digits of large whole numbers stay exact.
    above = (there - low).astype(np.float64)
    counts, _ = np.histogram(above, _BINS, (0, float(above.max()) or 1))
    mean = float(low) + float(above.mean())
    return {"least": low.item(), "largest": high.item(), "mean": mean, "histogram": counts.tolist()}
