"""CSV files as blocks of Arrow columns."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from stoker.data import cache
from stoker.data.columns import Column, from_arrow
from stoker.data.misfits import refuse
from stoker.data.paths import spoken, unreadable
from stoker.errors import ArgumentError
from stoker.units import counted

_BLOCK = 1 << 22
# They separate rows, and surround fields.
_NO_SEPARATORS = '\r\n"'
# Types are inferred from the first block; a later value that does not fit widens its column.
_SAMPLE = 1 << 20
# Bytes in which it shows whether a file is text, and characters of a row that are shown.
_PEEK, _SHOWN = 1 << 16, 60
_CONVERSION = re.compile(
    r"In CSV column #(\d+): .*?CSV conversion error to [^:]+: invalid value '(.*)'", re.DOTALL
)
_NUMBER = r"^\s*[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|(?i:inf|infinity))\s*$"
# What Arrow takes for a missing number.
_ABSENT = r"^(?i:#?n/?a|[-+]?nan|null)?$"
# A part of a column's values that is too small to be meant.
_FEW = 0.1
_FIELDS = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")


class CsvFiles:
    """Files with the same columns, read one after the other.

    Args:
        paths: the files.
        separator: between the fields of a row.
        encoding: of the files.

    Raises:
        ArgumentError: that cannot separate fields.
    """

    def __init__(self, paths: list[Path], separator: str = ",", encoding: str = "utf8") -> None:
        if not isinstance(separator, str) or len(separator) != 1 or separator in _NO_SEPARATORS:
            raise ArgumentError(f"sep={separator!r} must be one character that separates fields, such as ';'")
        if not separator.isascii():
            raise ArgumentError(f"sep={separator!r} must be a plain (ASCII) character, such as ';'")
        self.paths = paths
        self.name = spoken(paths)
        self._parse = pacsv.ParseOptions(delimiter=separator, newlines_in_values=True)
        self._separator, self._encoding = separator, encoding
        self._header_line = ""

    def fingerprint(self) -> list[Any]:
        return [cache.state_of(path) for path in self.paths]

    def columns(self) -> list[Column]:
        path = self.paths[0]
        with self._plainly(path):
            self._demand_text(path)
        with self._plainly(path), self._open(path, pacsv.ConvertOptions(), _SAMPLE) as reader:
            sample = next(iter(reader), None)
        if sample is None:
            raise ArgumentError(f"{path} has no rows")
        twice = [name for name, count in Counter(sample.schema.names).items() if count > 1]
        if twice:
            raise ArgumentError(f"{path} has two columns called {twice[0]!r}: rename one")
        if len(sample.schema.names) == 1 and (wrong := self._other_separator(path, sample.schema.names[0])):
            raise wrong
        if any(pa.types.is_binary(field.type) for field in sample.schema):
            raise self._not_text(path)
        return [_column(path, name, sample.column(name)) for name in sample.schema.names]

    def _demand_text(self, path: Path) -> None:
        """Without this, anything at all is taken for a table with odd names."""
        with pa.input_stream(str(path)) as file:
            start = file.read(_PEEK)
        try:
            text = codecs.getincrementaldecoder(self._encoding)().decode(start)
        except UnicodeDecodeError:
            raise self._not_text(path) from None
        if "\0" in text:
            raise self._not_text(path)
        self._header_line = text.lstrip().partition("\n")[0].strip()

    def _other_separator(self, path: Path, header: str) -> ArgumentError | None:
        """What to say if a header that is one field looks like several."""
        for other in (";", "\t", "|", ","):
            if other != self._separator and header.count(other) > 0:
                return ArgumentError(
                    f"{path} has a single column called {header!r}: give sep={other!r} if that separates the fields"
                )
        return None

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in columns]
        options = pacsv.ConvertOptions(
            column_types={column.name: column.arrow for column in columns}, include_columns=names
        )
        for path in self.paths:
            with self._plainly(path, columns), self._open(path, options) as reader:
                yield from reader

    def _open(self, path: Path, options: pacsv.ConvertOptions, block: int = _BLOCK) -> Any:
        read = pacsv.ReadOptions(block_size=block, encoding=self._encoding)
        return pacsv.open_csv(
            str(path), read_options=read, parse_options=self._parse, convert_options=options
        )

    @contextmanager
    def _plainly(self, path: Path, columns: list[Column] | None = None) -> Iterator[None]:
        """What Arrow raises, in one line with the row and the value."""
        try:
            yield
        except (KeyError, pa.ArrowKeyError) as error:
            missing = re.search(r"Column '(.*)' in include_columns", str(error))
            if missing is None:
                raise
            raise ArgumentError(
                f"{path} has no column {missing.group(1)!r}, which {self.paths[0]} has: all files need the same"
            ) from None
        except (UnicodeDecodeError, LookupError) as error:
            raise ArgumentError(f"{path} cannot be read as {self._encoding!r}: {error}") from None
        except pa.ArrowInvalid as error:
            raise self._spoken(path, columns or [], str(error)) from None
        except OSError as error:
            raise unreadable(path, error) from None

    def _spoken(self, path: Path, columns: list[Column], message: str) -> Exception:
        if found := _CONVERSION.search(message):
            named = {column.name: column for column in columns}
            column = named.get(self._header(path)[int(found.group(1))])
            if column is not None:
                value = found.group(2)
                return refuse(column, value, str(path), self._row_of(path, column.name, value))
        if "invalid UTF8" in message or "invalid UTF-8" in message:
            return self._not_text(path)
        if found := _FIELDS.search(message):
            expected, got, text = found.groups()
            said = f"{path}: a row has {counted(int(got), 'field')} where the header has {expected}: {_shortly(text)}"
            guessed = self._other_separator(path, self._header_line) if expected == "1" else None
            return guessed or ArgumentError(said)
        if "Empty CSV file" in message:
            return ArgumentError(f"{path} is empty")
        return ArgumentError(f"{path}: {message.splitlines()[0]}")

    def _not_text(self, path: Path) -> ArgumentError:
        return ArgumentError(
            f"{path} is not {self._encoding} text: if it is a CSV file at all, say its encoding, such as "
            "encoding='latin-1' or 'utf-16'"
        )

    def _header(self, path: Path) -> list[str]:
        with self._open(path, pacsv.ConvertOptions()) as reader:
            return list(reader.schema.names)

    def _row_of(self, path: Path, column: str, value: str) -> int | None:
        """The row that holds this value, by a pass over that column alone."""
        import pyarrow.compute as pc

        options = pacsv.ConvertOptions(column_types={column: pa.string()}, include_columns=[column])
        rows = 0
        with self._open(path, options) as reader:
            for block in reader:
                index = pc.index(block.column(0), value).as_py()
                if index >= 0:
                    return rows + int(index) + 1
                rows += len(block)
        return None


def _shortly(text: str) -> str:
    """The beginning of a row, without what would upset a terminal."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def _column(path: Path, name: str, sample: Any) -> Column:
    # A time of day without a date is no number of its own: it stays the text it is.
    if pa.types.is_time(sample.type):
        return Column(name, "category")
    column = from_arrow(name, sample)
    return replace(column, doubt=_doubt(path, name, sample)) if pa.types.is_string(sample.type) else column


def _doubt(path: Path, name: str, sample: Any) -> str:
    """Text among numbers: a slip of the pen must not make a category of a whole column."""
    import pyarrow.compute as pc

    there = pc.invert(pc.match_substring_regex(sample, _ABSENT))
    odd = pc.and_(there, pc.invert(pc.match_substring_regex(sample, _NUMBER)))
    count, filled = pc.sum(odd).as_py() or 0, pc.sum(there).as_py() or 0
    if not 0 < count <= _FEW * filled:
        return ""
    row = pc.index(odd, True).as_py()
    return (
        f"{path}, row {row + 1:,}: {sample[row].as_py()!r} in column {name} is not a number, as most of its values "
        f"are: correct it (an empty field is a missing number), or read the column with types={{{name!r}: 'category'}}"
    )
