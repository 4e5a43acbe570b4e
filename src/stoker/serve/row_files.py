"""Read rows from files, a chunk at a time: tables (CSV, Parquet, JSON lines), folders of texts, folders of images.

The kinds of columns are not inferred: a bundle knows how to read their cells. A CSV file is parsed by the rules of
training: a title above the header is skipped, and a total at the end gets no answer.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stoker.data import paths
from stoker.data.csv_layout import guess_separator
from stoker.data.csv_rows import HIDDEN, CsvRepairs, JudgedRow, fill_rows, judge_rows
from stoker.data.encodings import check_encoding, decode, refuse_encoding
from stoker.errors import ArgumentError, first_line
from stoker.serve import images
from stoker.serve.signature import Field
from stoker.serve.table_cells import is_table

# The numbers of rows and of files in one chunk.
_ROWS, _FILES = 8192, 64
_PEEK = 1 << 16
_TABLES = paths.CSV + paths.PARQUET + paths.JSONL
# The column that names the file of a text or an image.
FILE = "file"


@dataclass(frozen=True)
class RowChunk:
    """Some rows of a file.

    Attributes:
        source: the file or folder.
        first: the number of the first row, counted from 1.
        columns: the cells by column.
        shown: the columns that an answer repeats.
        left_out: why training would leave a row out, by its place in the chunk. Such a row has no answer.
    """

    source: str
    first: int
    columns: dict[str, list[object]]
    shown: tuple[str, ...]
    left_out: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def places(self) -> list[int]:
        """The places of the rows that have an answer."""
        return [place for place in range(len(self)) if place not in self.left_out]

    def cells(self, name: str) -> list[object]:
        """Return the cells of a column in the rows that have an answer."""
        cells = self.columns[name]
        return [cells[place] for place in self.places] if self.left_out else cells

    def row(self, place: int) -> RowChunk:
        """Return one of the rows as a chunk."""
        alone = {name: cells[place : place + 1] for name, cells in self.columns.items()}
        return RowChunk(self.source, self.first + place, alone, self.shown)


@dataclass(frozen=True)
class RowFileOptions:
    """Options for reading the files.

    Attributes:
        sep: the separator of CSV files; None to find out.
        encoding: the encoding of CSV and text files; None to find out.
        column: the column that holds the texts, for a bundle that takes texts alone.
        repairs: what was done to the rows of each CSV file; filled in while it is read.
    """

    sep: str | None = None
    encoding: str | None = None
    column: str | None = None
    repairs: dict[Path, CsvRepairs] = field(default_factory=dict)


def read_chunks(path: str, fields: Sequence[Field], options: RowFileOptions) -> Iterator[RowChunk]:
    """Yield the rows of a file, a glob or a folder.

    Raises:
        ArgumentError: there is no such file, or it cannot be read.
    """
    wanted, encoding = _single_files(fields, options.encoding)
    found = _files(path, wanted) or paths.files(path, wanted + _TABLES)
    if singles := [one for one in found if one.name.lower().endswith(wanted)]:
        return _file_chunks(path, singles, fields[0], encoding)
    return _table_chunks(found, fields, options)


def _single_files(fields: Sequence[Field], encoding: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the endings of files that are one row each, for a bundle of only images or texts; and their encoding."""
    if len(fields) == 1 and images.takes_files(fields[0]):
        return paths.IMAGES, None
    if len(fields) == 1 and fields[0].dtype == "string":
        return paths.TEXTS, encoding or "utf-8"
    return (), None


def _files(path: str, suffixes: tuple[str, ...]) -> list[Path]:
    """List the files below a folder, or the one file."""
    root = Path(path).expanduser()
    some = sorted(root.rglob("*")) if suffixes and root.is_dir() else [root]
    return [one for one in some if one.is_file() and one.name.lower().endswith(suffixes)]


def _file_chunks(path: str, files: list[Path], field: Field, encoding: str | None) -> Iterator[RowChunk]:
    for first in range(0, len(files), _FILES):
        some = files[first : first + _FILES]
        given: list[object] = [one if encoding is None else _read_text(one, encoding) for one in some]
        yield RowChunk(path, first + 1, {FILE: [str(one) for one in some], field.name: given}, (FILE,))


def _read_text(file: Path, encoding: str) -> str:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise paths.explain_unreadable(file, error) from None
    text = decode(raw, check_encoding(encoding))
    if text is None:
        raise refuse_encoding(file, encoding)
    return text


def _table_chunks(files: list[Path], fields: Sequence[Field], options: RowFileOptions) -> Iterator[RowChunk]:
    for file in files:
        first = 1
        try:
            for columns, left_out in _table_columns(file, fields, options):
                shown = tuple(columns)
                ready = _with_text(columns, fields, options.column, file)
                yield RowChunk(str(file), first, ready, shown, left_out)
                first += len(next(iter(columns.values()), ()))
        except OSError as error:
            raise paths.explain_unreadable(file, error) from None


def _table_columns(
    file: Path, fields: Sequence[Field], options: RowFileOptions
) -> Iterator[tuple[dict[str, list[object]], dict[int, str]]]:
    """Yield columns by name, and the rows that training would leave out, a chunk at a time."""
    name = file.name.lower()
    if name.endswith(paths.CSV):
        yield from _csv_rows(file, options, judged=is_table(fields))
    else:
        read = _parquet_columns if name.endswith(paths.PARQUET) else _jsonl_rows
        yield from ((columns, {}) for columns in read(file))


def _with_text(
    columns: dict[str, list[object]], fields: Sequence[Field], column: str | None, file: Path
) -> dict[str, list[object]]:
    """Return the columns, with the texts under the name that the bundle has for them."""
    if column is None or len(fields) > 1 or fields[0].name in columns:
        return columns
    if column not in columns:
        raise ArgumentError(f"{file} has no column {column!r}: name the one with the texts with --column")
    return {**columns, fields[0].name: columns[column]}


def _csv_rows(
    file: Path, options: RowFileOptions, *, judged: bool
) -> Iterator[tuple[dict[str, list[object]], dict[int, str]]]:
    import pyarrow as pa

    encoding = check_encoding(options.encoding or _find_encoding(file))
    try:
        with pa.input_stream(str(file)) as stream:
            head = codecs.getincrementaldecoder(encoding)().decode(stream.read(_PEEK))
    except UnicodeDecodeError:
        raise refuse_encoding(file, encoding) from None
    usual = "\t" if ".tsv" in file.name.lower() else ","
    sep = options.sep or guess_separator(head, usual)
    repairs = options.repairs.setdefault(file, CsvRepairs())
    with pa.input_stream(str(file)) as stream, io.TextIOWrapper(stream, encoding, newline="") as text:
        rows = csv.reader(text, delimiter=sep)
        try:
            yield from _columns_of_rows(judge_rows(rows, repairs) if judged else fill_rows(rows), file)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ArgumentError(f"{file} cannot be read as {encoding} CSV: {error}") from None


def _find_encoding(file: Path) -> str:
    from stoker.data.csv_repair import find_encoding

    found = find_encoding(file)
    if not found:
        raise ArgumentError(f"{file} is not UTF-8 text: give its --encoding")
    return "utf-8-sig" if found == "utf-8" else found


def _columns_of_rows(
    rows: Iterator[JudgedRow], file: Path
) -> Iterator[tuple[dict[str, list[object]], dict[int, str]]]:
    header, _ = next(rows, ([], None))
    if not header:
        raise ArgumentError(f"{file} is empty: it needs a header and rows")
    while chunk := list(itertools.islice(rows, _ROWS)):
        columns: dict[str, list[object]] = {
            name: [cells[place] for cells, _ in chunk]
            for place, name in enumerate(header)
            if not name.startswith(HIDDEN)
        }
        yield columns, {place: why for place, (_, why) in enumerate(chunk) if why is not None}


def _jsonl_rows(file: Path) -> Iterator[dict[str, list[object]]]:
    import pyarrow as pa

    with pa.input_stream(str(file)) as stream, io.TextIOWrapper(stream, "utf-8-sig") as text:
        numbered = ((number, line) for number, line in enumerate(text, 1) if line.strip())
        while chunk := [_parse(file, *one) for one in itertools.islice(numbered, _ROWS)]:
            names = dict.fromkeys(name for row in chunk for name in row)
            yield {name: [row.get(name) for row in chunk] for name in names}


def _parse(file: Path, number: int, line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ArgumentError(f"{file}, line {number:,} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"{file}, line {number:,} must be a JSON object, got {type(found).__name__}")
    return found


def _parquet_columns(file: Path) -> Iterator[dict[str, list[object]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            for block in opened.iter_batches(_ROWS):
                yield {name: block.column(name).to_pylist() for name in block.schema.names}
    except pa.ArrowInvalid as error:
        raise ArgumentError(f"{file} cannot be read: {first_line(error)}") from None
