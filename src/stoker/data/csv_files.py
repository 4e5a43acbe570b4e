"""Read CSV files as blocks of Arrow columns."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from stoker.data.columns import GUESS, Column, Restart, Widen, check_different, from_arrow
from stoker.data.csv_layout import guess_separator, is_separator_line
from stoker.data.csv_repair import EvenRows, find_encoding, find_ragged, find_totals, read_end, read_rows
from stoker.data.csv_returns import WithStandIns, find_stand_in, restore
from stoker.data.csv_rows import HIDDEN, CsvRepairs
from stoker.data.encodings import show_encoding, suggest_others
from stoker.data.ingest import BLOCK, FileSource
from stoker.data.misfits import KIND_WORDS, explain_too_large, is_whole, refuse, widen
from stoker.data.odd_cells import find_odd_cells, replace_missing
from stoker.data.paths import PACKED, explain_unreadable
from stoker.errors import ArgumentError, first_line
from stoker.storage import arriving
from stoker.units import quantity

# These separate rows or surround fields.
_NO_SEPARATORS = '\r\n"'
# Types are inferred from the first block; a later value that does not fit widens its column.
_SAMPLE = 1 << 20
# The bytes that show whether a file is text, and the characters of a row that a message quotes.
_PEEK, _QUOTED = 1 << 16, 60
_CONVERSION = re.compile(
    r"In CSV column #(\d+): .*?CSV conversion error to [^:]+: invalid value '(.*)'", re.DOTALL
)
# Missing numbers as Python and pandas write them, in addition to those that Arrow knows.
_ABSENT = ("None", "<NA>")
_HEX = r"^\s*[-+]?0[xX]"
_WHOLE = r"^\s*[-+]?\d+\s*$"
_TOO_LARGE = 2.0**63
_FIELDS = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")


class CsvFiles(FileSource):
    """CSV files with the same columns, read one after the other.

    Args:
        paths: the files.
        separator: the text between the fields of a row.
        encoding: the encoding of the files.
        missing: texts that stand for missing values, in addition to those that Arrow knows.
        lenient: find out the separator and the encoding if the given ones are wrong, and repair uneven rows.

    Raises:
        ArgumentError: the separator cannot separate fields.
    """

    def __init__(
        self,
        paths: list[Path],
        separator: str = ",",
        encoding: str = "utf8",
        missing: tuple[str, ...] = (),
        lenient: bool = False,
    ) -> None:
        if not isinstance(separator, str) or len(separator) != 1 or separator in _NO_SEPARATORS:
            raise ArgumentError(f"sep={separator!r} must be one character that separates fields, such as ';'")
        if not separator.isascii():
            raise ArgumentError(f"sep={separator!r} must be a plain (ASCII) character, such as ';'")
        super().__init__(paths, missing)
        self._parse = pacsv.ParseOptions(delimiter=separator, newlines_in_values=True)
        self._separator, self._encoding = separator, encoding
        self._header_line, self._has_hex = "", False
        self._absent = [*pacsv.ConvertOptions().null_values, *_ABSENT, *missing]
        self._one_column = False
        # By file: the character that stands for the lone carriage returns in its cells.
        self._stand_ins: dict[Path, str] = {}
        self._lenient = lenient
        # The repairs, by file, of files with uneven rows.
        self._repairs: dict[Path, CsvRepairs] = {}
        # Files that were searched for totals from end to end.
        self._searched: set[Path] = set()
        self._notes: list[str] = []

    def columns(self) -> list[Column]:
        path = self._first()
        while True:
            try:
                with self._explain_errors(path):
                    self._check_text(path)
                break
            except Restart:
                continue
        sample = self._sample(path)
        if self._lenient and self._needs_repair(path, sample):
            self._repairs[path] = CsvRepairs()
            sample = self._sample(path)
        check_different(sample.schema.names, str(path))
        self._one_column = len(sample.schema.names) == 1
        if self._one_column:
            if wrong := self._other_separator(path, sample.schema.names[0]):
                raise wrong
            if self._finds_lone_returns(path):
                sample = self._sample(path)
        if any(pa.types.is_binary(field.type) for field in sample.schema):
            raise self._handle_undecodable_text(path)
        texts = self._find_doubtful_numbers(path, sample)
        names = [name for name in sample.schema.names if not name.startswith(HIDDEN)]
        return [self._column(path, name, sample.column(name), texts) for name in names]

    def _needs_repair(self, path: Path, sample: pa.RecordBatch) -> bool:
        """Return whether columns share a name, the header is repeated, or the table has totals."""
        if path in self._repairs:
            return False
        names = sample.schema.names
        if len(set(names)) < len(names):
            return True
        texts = [
            name for name, kind in zip(names, sample.schema.types, strict=True) if pa.types.is_string(kind)
        ]
        repeats = [name for name in texts if name in sample.column(name).unique().to_pylist()]
        if len(repeats) > 1 or (repeats and len(names) == 1):
            return True
        if len(names) == 1:
            return False
        with self._bytes(path) as stream:
            return find_totals(stream, self._separator, read_end(path, self._encoding))

    def about_files(self) -> dict[str, Any]:
        """Return in words what was found out about the files and done to their rows, and whether rows were uneven."""
        repairs = [line for one in self._repairs.values() for line in one.lines()]
        return {"notes": [*dict.fromkeys(self._notes), *repairs], "uneven": bool(repairs)}

    def _column(self, path: Path, name: str, values: pa.Array, texts: dict[str, pa.Array]) -> Column:
        # A time of day without a date stays text.
        if pa.types.is_time(values.type):
            return Column(name, "category")
        if name in texts:
            if pa.types.is_integer(values.type):
                return from_arrow(name, texts[name])
            return replace(from_arrow(name, values), doubt=_explain_rounding(path, name, texts[name]))
        if not pa.types.is_string(values.type):
            return from_arrow(name, values)
        values = replace_missing(values, self._missing)
        column = from_arrow(name, values)
        odd = find_odd_cells([values])
        whole_file = path.stat().st_size <= _SAMPLE and not path.name.lower().endswith(PACKED)
        if odd is not None and odd.are_few:
            return replace(column, doubt=odd.refusal(str(path), name, "a number", whole_file))
        if odd is not None and odd.look_like_gaps:
            return replace(column, note=odd.note(str(path), name, whole_file))
        return column

    def _find_doubtful_numbers(self, path: Path, sample: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the texts of columns that Arrow reads as numbers although they hold 0x1F or too many digits."""
        import pyarrow.compute as pc

        whole = [field.name for field in sample.schema if pa.types.is_integer(field.type)]
        large = [
            field.name
            for field in sample.schema
            if pa.types.is_floating(field.type)
            and (pc.max(pc.abs(sample.column(field.name))).as_py() or 0) >= _TOO_LARGE
        ]
        if not large and not (whole and self._has_hex):
            return {}
        kinds = dict.fromkeys([*whole, *large], pa.string())
        texts = self._sample(path, kinds)
        return {
            name: texts.column(name)
            for name in kinds
            if name in large or pc.any(pc.match_substring_regex(texts.column(name), _HEX)).as_py()
        }

    def _sample(self, path: Path, types: dict[str, pa.DataType] | None = None) -> pa.RecordBatch:
        """Return the first block, with these types or those that Arrow infers."""
        options = pacsv.ConvertOptions(column_types=types, null_values=self._absent)
        while True:
            try:
                with self._explain_errors(path), self._open(path, options, _SAMPLE) as reader:
                    block = next(iter(reader), None)
                    if block is None:
                        raise ArgumentError(f"{path} has no rows")
                    return self._restore(path, block)
            except Restart:
                continue

    def _check_text(self, path: Path) -> None:
        """Refuse a file that is not text: Arrow would take it for a table with odd column names."""
        with pa.input_stream(str(path)) as file:
            start = file.read(_PEEK)
        try:
            text = codecs.getincrementaldecoder(self._encoding)().decode(start)
        except UnicodeDecodeError:
            raise self._handle_undecodable_text(path) from None
        if "\0" in text or start.startswith(b"PK\3\4"):
            if start.startswith(b"PK"):
                raise ArgumentError(f"{path} is not text but a spreadsheet or an archive: save it as CSV")
            raise self._handle_undecodable_text(path)
        if self._lenient and is_separator_line(text):
            self._repairs[path] = CsvRepairs()
        if self._lenient and (other := guess_separator(text, self._separator)) != self._separator:
            self._notes.append(f"{other!r} separates the fields")
            self._separator = other
            self._parse = pacsv.ParseOptions(delimiter=other, newlines_in_values=True)
        self._has_hex = re.search("0[xX]", text) is not None
        self._header_line = text.lstrip().partition("\n")[0].strip()

    def _other_separator(self, path: Path, header: str) -> ArgumentError | None:
        """Return the error for a header that is one field but looks like several; None if it does not."""
        for other in (";", "\t", "|", ","):
            if other != self._separator and other in header:
                return ArgumentError(
                    f"{path} has a single column called {header!r}: give sep={other!r} if that separates the fields"
                )
        return None

    def blocks(self, columns: list[Column]) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in columns]
        options = pacsv.ConvertOptions(
            column_types={column.name: column.arrow for column in columns},
            include_columns=names,
            null_values=self._absent,
        )
        for path in arriving(self.paths):
            if self._one_column:
                # With a single column, the number of fields does not show that returns break the rows.
                self._finds_lone_returns(path)
            with self._explain_errors(path, columns), self._open(path, options) as reader:
                for block in reader:
                    yield self._restore(path, block)
            self._look_for_totals(path)

    def _look_for_totals(self, path: Path) -> None:
        """Read the file again without its totals, if it has any that were not found at its beginning or end."""
        if not self._lenient or self._one_column or path in self._repairs or path in self._searched:
            return
        self._searched.add(path)
        with self._bytes(path) as stream:
            if find_totals(stream, self._separator):
                self._repairs[path] = CsvRepairs()
                raise Restart

    def _open(
        self, path: Path, options: pacsv.ConvertOptions, block: int = BLOCK
    ) -> pacsv.CSVStreamingReader:
        stand_in = self._stand_ins.get(path)
        plain = not stand_in and path not in self._repairs
        read = pacsv.ReadOptions(
            block_size=max(block, self._least_block), encoding=self._encoding if plain else "utf8"
        )
        opened: Any = str(path)
        if stand_in:
            opened = WithStandIns(self._bytes(path), stand_in)
        if path in self._repairs:
            self._repairs[path] = CsvRepairs()
            stream = opened if stand_in else self._bytes(path)
            opened = EvenRows(stream, self._separator, self._repairs[path], str(path))
        return pacsv.open_csv(opened, read_options=read, parse_options=self._parse, convert_options=options)

    def _bytes(self, path: Path) -> pa.NativeFile:
        """Open the file, decompressed and in UTF-8."""
        stream = pa.input_stream(str(path))
        if self._encoding == "utf8":
            return stream
        return pa.transcoding_input_stream(stream, self._encoding, "utf8")

    def _restore(self, path: Path, block: pa.RecordBatch) -> pa.RecordBatch:
        """Put lone returns back into the cells of a block, and drop the texts that stand for missing values."""
        stand_in = self._stand_ins.get(path)
        if not stand_in and not self._missing:
            return block
        values = block.columns if not stand_in else [restore(column, stand_in) for column in block.columns]
        values = [replace_missing(column, self._missing) for column in values]
        return pa.RecordBatch.from_arrays(values, block.schema.names)

    @contextmanager
    def _explain_errors(self, path: Path, columns: list[Column] | None = None) -> Iterator[None]:
        """Turn Arrow's errors into one line that names the row and the value."""
        try:
            yield
        except (KeyError, pa.ArrowKeyError) as error:
            missing = re.search(r"Column '(.*)' in include_columns", str(error))
            if missing is None:
                raise
            if self._lenient and path not in self._repairs:
                # A title may come before its header.
                self._repairs[path] = CsvRepairs()
                raise Restart from None
            raise ArgumentError(
                f"{path} has no column {missing.group(1)!r}, but {self.paths[0]} has: give all files the same columns"
            ) from None
        except (UnicodeDecodeError, LookupError) as error:
            raise ArgumentError(f"{path} cannot be read as {self._encoding!r}: {error}") from None
        except pa.ArrowInvalid as error:
            raise self._explain(path, columns or [], str(error)) from None
        except OSError as error:
            raise explain_unreadable(path, error) from None

    def _explain(self, path: Path, columns: list[Column], message: str) -> Exception:
        if stand_in := self._stand_ins.get(path):
            message = message.replace(stand_in, "\r")
        if found := _CONVERSION.search(message):
            named = {column.name: column for column in columns}
            column = named.get(self._header(path)[int(found.group(1))])
            if column is not None:
                return self._explain_misfit(path, column, found.group(2))
        if "invalid UTF8" in message or "invalid UTF-8" in message:
            return self._handle_undecodable_text(path)
        if "straddling object" in message:
            return self._enlarge_blocks(path, "a closing quote is probably missing")
        if found := _FIELDS.search(message):
            if self._finds_lone_returns(path):
                return Restart()
            if self._lenient and path not in self._repairs:
                self._repairs[path] = CsvRepairs()
                return Restart()
            expected, got, text = found.groups()
            hint = " (a closing quote is probably missing)" if text.count('"') % 2 else ""
            guessed = self._other_separator(path, self._header_line) if expected == "1" else None
            return guessed or ArgumentError(
                f"{path}{self._place_of_ragged(path)}: a row has {quantity(int(got), 'field')} where the header has "
                f"{expected}: {_quote(text)}{hint}"
            )
        if "Empty CSV file" in message:
            return ArgumentError(f"{path} is empty: it needs a header and rows")
        return ArgumentError(f"{path}: {first_line(message)}")

    def _place_of_ragged(self, path: Path) -> str:
        """Say which row is the first with too few or too many fields, for a message; empty if that is unknown."""
        try:
            with self._bytes(path) as stream:
                found = find_ragged(read_rows(stream, self._separator))
        except (csv.Error, UnicodeDecodeError):
            found = None
        return "" if found is None else f", row {found[0]:,}"

    def _finds_lone_returns(self, path: Path) -> bool:
        """Find out whether carriage returns in cells may have broken the rows. If so, they now stay in their cells."""
        if path in self._stand_ins:
            return False
        with self._bytes(path) as stream:
            self._stand_ins[path] = find_stand_in(stream)
        return bool(self._stand_ins[path])

    def _handle_undecodable_text(self, path: Path) -> ArgumentError | Restart:
        if self._lenient and self._encoding == "utf8" and (other := find_encoding(path)) not in ("", "utf-8"):
            self._encoding = other
            self._notes.append(f"not UTF-8, so read as {other}")
            return Restart()
        return ArgumentError(
            f"{path} is not {show_encoding(self._encoding)} text: if it is a CSV file, give its encoding, such as "
            f"{suggest_others(self._encoding)}"
        )

    def _header(self, path: Path) -> list[str]:
        with self._open(path, pacsv.ConvertOptions()) as reader:
            return list(reader.schema.names)

    def _explain_misfit(self, path: Path, column: Column, value: str) -> Exception:
        """Return the error for a value that does not fit. Finding its row takes a pass over that column alone."""
        wider = widen(column, value)
        if wider is not None:
            return Widen(wider)
        if self._lenient:
            if value.strip() == column.name.strip() and path not in self._repairs:
                self._repairs[path] = CsvRepairs()
                return Restart()
            return Widen(replace(column, reading=GUESS))
        if column.kind in ("number", "whole") and not is_whole(value):
            odd = find_odd_cells(self._texts(path, column.name))
            if odd is not None:
                return ArgumentError(odd.refusal(str(path), column.name, KIND_WORDS[column.kind]))
        rows = 0
        for block in self._texts(path, column.name):
            index = block.index(value).as_py()
            if index >= 0:
                return refuse(column, value, str(path), rows + int(index) + 1)
            rows += len(block)
        return refuse(column, value, str(path), None)

    def _texts(self, path: Path, name: str) -> Iterator[pa.Array]:
        """Yield a column as text, a block at a time."""
        options = pacsv.ConvertOptions(column_types={name: pa.string()}, include_columns=[name])
        with self._open(path, options) as reader:
            for block in reader:
                yield self._restore(path, block).column(0)


def _quote(text: str) -> str:
    """Quote the beginning of a row, without characters that a terminal would obey."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= _QUOTED else f"{plain[:_QUOTED]}..."


def _explain_rounding(path: Path, name: str, texts: pa.Array) -> str:
    """Return the message that refuses whole numbers beyond int64, which floats would round; empty if there are none."""
    import pyarrow.compute as pc

    written = texts.filter(pc.not_equal(texts, ""))
    if not pc.all(pc.match_substring_regex(written, _WHOLE)).as_py():
        return ""
    digits = pc.utf8_length(pc.utf8_ltrim(pc.utf8_trim_whitespace(written), "+-0"))
    longest = written[pc.index(digits, pc.max(digits)).as_py()].as_py().strip()
    return explain_too_large(str(path), longest, name)
