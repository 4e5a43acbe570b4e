"""Describe a data set: rows, columns, kinds, missing values, classes, distributions, and how fast it can be read.

PATH is a CSV, Parquet, JSON lines, text, TFRecord or tar file, a glob, a folder of such files, or a folder with a
folder of images or texts for each class. A table is read as `stoker train table` reads it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from stoker import units
from stoker.chatter import quiet_tensorflow
from stoker.cli._options import add_json, any_path, separator
from stoker.cli._spelling import print_warnings, respell_errors
from stoker.doctor.report import words
from stoker.errors import name_extra
from stoker.printing import print_answer, print_note

_BARS = " ▁▂▃▄▅▆▇█"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker data`."""
    parser.add_argument(
        "path", type=any_path, metavar="PATH", help="a file, a glob or a folder; a path or a URL"
    )
    parser.add_argument(
        "--sep", type=separator, help="the character between the fields of a CSV file (detected)"
    )
    parser.add_argument("--encoding", default="utf8", help="the encoding of CSV and text files (detected)")
    add_json(parser, "print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Survey the data, and print the result."""
    try:
        from stoker.data.survey import survey

        # TensorFlow reads images, TFRecord and tar files.
        with quiet_tensorflow(), respell_errors(args), print_warnings(args, print_note):
            found = survey(args.path, args.sep, args.encoding)
    except ModuleNotFoundError as error:
        raise name_extra("stoker data", error) or error from None
    if args.json:
        print_answer(json.dumps(found))
    else:
        _show(found)
    return 0


def _show(found: dict[str, Any]) -> None:
    rows, files = units.quantity(found["rows"], "row"), units.quantity(found["files"], "file")
    columns = units.quantity(len(found["columns"]), "column")
    print_answer(f"{found['path']}: {rows}, {columns}, {found['format']}, {files}")
    cache = f", {units.size(found['cache_bytes'])} in the cache" if "cache_bytes" in found else ""
    print_answer(
        f"{units.size(found['bytes'])}{cache}; read at {words.rate(found['rows_per_s'])} rows/s "
        f"({units.size(found['bytes_per_s'])}/s){_describe_sample(found)}"
    )
    print_answer()
    name_width = max(6, *(len(column["name"]) for column in found["columns"]))
    kind_width = max(8, *(len(column["kind"]) for column in found["columns"]))
    print_answer(f"{'column':<{name_width}}  {'kind':<{kind_width}}  {'missing':>9}  values")
    for column in found["columns"]:
        missing = f"{column['missing']:,}" if column["missing"] else "-"
        print_answer(
            f"{column['name']:<{name_width}}  {column['kind']:<{kind_width}}  {missing:>9}  {_values(column)}"
        )
    if found.get("left_out"):
        print_answer(f"\nnot readable as a table: {', '.join(found['left_out'])}")
    notes = [f"{c['name']}: {c['how']}" for c in found["columns"] if c.get("how")]
    notes += [
        f"{c['name']}: {units.quantity(c['unreadable'], 'unreadable cell')} taken as missing"
        for c in found["columns"]
        if c.get("unreadable")
    ]
    notes += [column[key] for column in found["columns"] for key in ("doubt", "note") if key in column]
    notes += found.get("notes", [])
    notes += [
        f"{path} cannot be decoded: it is damaged, not an image, or of a kind TensorFlow cannot read"
        for path in found.get("damaged", ())
    ]
    if notes:
        print_answer("\n" + "\n".join(notes))


def _describe_sample(found: dict[str, Any]) -> str:
    seen = found.get("looked_at", found["rows"])
    return "" if seen >= found["rows"] else f"; values come from {seen:,} of them"


def _values(column: dict[str, Any]) -> str:
    if column["kind"] == "image":
        return ", ".join(f"{count:,} of {size}" for size, count in column["top"])
    if "top" in column:
        top = ", ".join(f"{word!r} {count:,}" for word, count in column["top"][:5])
        more = column["different"] - min(5, len(column["top"]))
        return f"{column['different']:,} different: {top}" + (f" and {more:,} more" if more > 0 else "")
    spread = column.get("values") or column.get("characters")
    if spread is None:
        return "nothing but missing values"
    what = f" {column['of']}" if column.get("of") else " characters" if column["kind"] == "text" else ""
    show = _date(column["unit"]) if column.get("unit") else _number
    ends = f"{show(spread['least'])} to {show(spread['largest'])}{what}"
    return f"{_bars(spread['histogram'])}  {ends}, mean {show(spread['mean'])}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _date(unit: str) -> Callable[[float], str]:
    seconds = {"D": 86400.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]

    def show(value: float) -> str:
        moment = datetime(1970, 1, 1) + timedelta(seconds=value * seconds)
        return moment.isoformat(" ", "seconds").removesuffix(" 00:00:00")

    return show


def _bars(counts: list[int]) -> str:
    most = max(counts)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts)
