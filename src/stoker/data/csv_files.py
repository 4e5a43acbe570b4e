"""CSV files as blocks of Arrow columns."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from stoker.data import cache
from stoker.data.columns import Column, Restart, Widen, demand_different, from_arrow
from stoker.data.csv_returns import WithStandIns, find_stand_in, restore
from stoker.data.misfits import KIND_WORDS, is_whole, refuse, widened
from stoker.data.odd_cells import find_odd_cells, without
from stoker.data.paths import PACKED, spoken, unreadable
from stoker.errors import ArgumentError
from stoker.units import counted

_BLOCK = 1 << 22
# A row must fit into a block. Blocks grow up to this size; beyond it a quote is rather missing.
_LARGEST_BLOCK = 1 << 25
# They separate rows, and surround fields.
_NO_SEPARATORS = '\r\n"'
# Types are inferred from the first block; a later value that does not fit widens its column.
_SAMPLE = 1 << 20
# Bytes in which it shows whether a file is text, and characters of a row that are shown.
_PEEK, _SHOWN = 1 << 16, 60
_CONVERSION = re.compile(
    r"In CSV column #(\d+): .*?CSV conversion error to [^:]+: invalid value '(.*)'", re.DOTALL
)
# Missing numbers as Python and pandas write them, beside those that Arrow knows.
_ABSENT = ("None", "<NA>")
_HEX = r"^\s*[-+]?0[xX]"
_WHOLE = r"^\s*[-+]?\d+\s*$"
_TOO_LARGE = 2.0**63
_FIELDS = re.compile(r"Expected (\d+) columns, got (\d+): (.*)")


class CsvFiles:
    """Files with the same columns, read one after the other.

    Args:
        paths: the files.
        separator: between the fields of a row.
        encoding: of the files.
        missing: texts that stand for missing values, beside those that Arrow knows.

    Raises:
        ArgumentError: that cannot separate fields.
    """

    def __init__(
        self, paths: list[Path], separator: str = ",", encoding: str = "utf8", missing: tuple[str, ...] = ()
    ) -> None:
        if not isinstance(separator, str) or len(separator) != 1 or separator in _NO_SEPARATORS:
            raise ArgumentError(f"sep={separator!r} must be one character that separates fields, such as ';'")
        if not separator.isascii():
            raise ArgumentError(f"sep={separator!r} must be a plain (ASCII) character, such as ';'")
        self.paths = paths
        self.name = spoken(paths)
        self._parse = pacsv.ParseOptions(delimiter=separator, newlines_in_values=True)
        self._separator, self._encoding = separator, encoding
        self._header_line, self._has_hex = "", False
        self._missing = missing
        self._absent = [*pacsv.ConvertOptions().null_values, *_ABSENT, *missing]
        self._least_block, self._one_column = 0, False
        # By file: what stands for the lone carriage returns in its cells.
        self._stand_ins: dict[Path, str] = {}

    def fingerprint(self) -> list[Any]:
        return [cache.state_of(path) for path in self.paths]

    def columns(self) -> list[Column]:
        path = self.paths[0]
        with self._plainly(path):
            self._demand_text(path)
        sample = self._sample(path)
        if sample is None:
            raise ArgumentError(f"{path} has no rows")
        demand_different(sample.schema.names, str(path))
        if len(sample.schema.names) == 1 and (wrong := self._other_separator(path, sample.schema.names[0])):
            raise wrong
        self._one_column = len(sample.schema.names) == 1
        if self._one_column and self._finds_lone_returns(path):
            sample = self._sample(path)
        if any(pa.types.is_binary(field.type) for field in sample.schema):
            raise self._not_text(path)
        texts = self._doubtful_numbers(path, sample)
        return [self._column(path, name, sample.column(name), texts) for name in sample.schema.names]

    def _column(self, path: Path, name: str, values: Any, texts: dict[str, Any]) -> Column:
        # A time of day without a date is no number of its own: it stays the text it is.
        if pa.types.is_time(values.type):
            return Column(name, "category")
        if name in texts:
            if pa.types.is_integer(values.type):
                return from_arrow(name, texts[name])
            return replace(from_arrow(name, values), doubt=_too_large(path, name, texts[name]))
        if not pa.types.is_string(values.type):
            return from_arrow(name, values)
        values = without(values, self._missing)
        column = from_arrow(name, values)
        odd = find_odd_cells([values])
        whole_file = path.stat().st_size <= _SAMPLE and not path.name.lower().endswith(PACKED)
        if odd is not None and odd.are_few:
            return replace(column, doubt=odd.refusal(str(path), name, "a number", whole_file))
        if odd is not None and odd.look_like_gaps:
            return replace(column, note=odd.note(str(path), name, whole_file))
        return column

    def _doubtful_numbers(self, path: Path, sample: Any) -> dict[str, Any]:
        """The texts of columns that Arrow reads as numbers although they hold 0x1F or too many digits."""
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

    def _sample(self, path: Path, types: dict[str, pa.DataType] | None = None) -> Any:
        """The first block, with the types Arrow infers from it where none are given; None without rows."""
        options = pacsv.ConvertOptions(column_types=types, null_values=self._absent)
        while True:
            try:
                with self._plainly(path), self._open(path, options, _SAMPLE) as reader:
                    block = next(iter(reader), None)
                    return block if block is None else self._restored(path, block)
            except Restart:
                continue

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
        self._has_hex = re.search("0[xX]", text) is not None
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
            column_types={column.name: column.arrow for column in columns},
            include_columns=names,
            null_values=self._absent,
        )
        for path in self.paths:
            if self._one_column:
                # No number of fields would show that returns break the rows.
                self._finds_lone_returns(path)
            with self._plainly(path, columns), self._open(path, options) as reader:
                for block in reader:
                    yield self._restored(path, block)

    def _open(self, path: Path, options: pacsv.ConvertOptions, block: int = _BLOCK) -> Any:
        stand_in = self._stand_ins.get(path)
        read = pacsv.ReadOptions(
            block_size=max(block, self._least_block), encoding="utf8" if stand_in else self._encoding
        )
        opened = WithStandIns(self._bytes(path), stand_in) if stand_in else str(path)
        return pacsv.open_csv(opened, read_options=read, parse_options=self._parse, convert_options=options)

    def _bytes(self, path: Path) -> Any:
        """The file, unpacked, in UTF-8."""
        stream = pa.input_stream(str(path))
        if self._encoding == "utf8":
            return stream
        return pa.transcoding_input_stream(stream, self._encoding, "utf8")

    def _restored(self, path: Path, block: pa.RecordBatch) -> pa.RecordBatch:
        """The block as the file means it: lone returns in their cells, nothing in place of what is missing."""
        stand_in = self._stand_ins.get(path)
        if not stand_in and not self._missing:
            return block
        values = block.columns if not stand_in else [restore(column, stand_in) for column in block.columns]
        values = [without(column, self._missing) for column in values]
        return pa.RecordBatch.from_arrays(values, block.schema.names)

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
        if stand_in := self._stand_ins.get(path):
            message = message.replace(stand_in, "\r")
        if found := _CONVERSION.search(message):
            named = {column.name: column for column in columns}
            column = named.get(self._header(path)[int(found.group(1))])
            if column is not None:
                return self._misfit(path, column, found.group(2))
        if "invalid UTF8" in message or "invalid UTF-8" in message:
            return self._not_text(path)
        if "straddling object" in message:
            return self._with_larger_blocks(path)
        if found := _FIELDS.search(message):
            if self._finds_lone_returns(path):
                return Restart()
            expected, got, text = found.groups()
            said = f"{path}: a row has {counted(int(got), 'field')} where the header has {expected}: {_shortly(text)}"
            if text.count('"') % 2:
                said += " (a closing quote is probably missing)"
            guessed = self._other_separator(path, self._header_line) if expected == "1" else None
            return guessed or ArgumentError(said)
        if "Empty CSV file" in message:
            return ArgumentError(f"{path} is empty")
        return ArgumentError(f"{path}: {message.splitlines()[0]}")

    def _with_larger_blocks(self, path: Path) -> Exception:
        self._least_block = max(_BLOCK, self._least_block) * 8
        if self._least_block <= _LARGEST_BLOCK:
            return Restart()
        return ArgumentError(
            f"{path} has a row longer than {_LARGEST_BLOCK >> 20} MB: a closing quote is probably missing"
        )

    def _finds_lone_returns(self, path: Path) -> bool:
        """Whether carriage returns in cells may have broken the rows; they are kept in their cells from now on."""
        if path in self._stand_ins:
            return False
        with self._bytes(path) as stream:
            self._stand_ins[path] = find_stand_in(stream)
        return bool(self._stand_ins[path])

    def _not_text(self, path: Path) -> ArgumentError:
        return ArgumentError(
            f"{path} is not {self._encoding} text: if it is a CSV file at all, say its encoding, such as "
            "encoding='latin-1' or 'utf-16'"
        )

    def _header(self, path: Path) -> list[str]:
        with self._open(path, pacsv.ConvertOptions()) as reader:
            return list(reader.schema.names)

    def _misfit(self, path: Path, column: Column, value: str) -> Exception:
        """What to raise for a value that does not fit; its row takes a pass over that column alone."""
        wider = widened(column, value)
        if wider is not None:
            return Widen(wider)
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

    def _texts(self, path: Path, name: str) -> Iterator[Any]:
        """A column as text, a block at a time."""
        options = pacsv.ConvertOptions(column_types={name: pa.string()}, include_columns=[name])
        with self._open(path, options) as reader:
            for block in reader:
                yield self._restored(path, block).column(0)


def _shortly(text: str) -> str:
    """The beginning of a row, without what would upset a terminal."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def _too_large(path: Path, name: str, texts: Any) -> str:
    """Whole numbers that only fit a float, which would round them."""
    import pyarrow.compute as pc

    written = texts.filter(pc.not_equal(texts, ""))
    if not pc.all(pc.match_substring_regex(written, _WHOLE)).as_py():
        return ""
    digits = pc.utf8_length(pc.utf8_ltrim(pc.utf8_trim_whitespace(written), "+-0"))
    longest = written[pc.index(digits, pc.max(digits)).as_py()].as_py().strip()
    return (
        f"{path}: {longest} in column {name} is too large for int64: read the column with "
        f"types={{{name!r}: 'category'}} (exact) or 'number' (rounded)"
    )
