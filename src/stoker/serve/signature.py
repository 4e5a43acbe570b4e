"""The inputs and outputs of a bundle: names, types, and the shape of one row. The number of rows is always free."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from stoker.data.cells import CellReading

Array: TypeAlias = NDArray[Any]
FieldRow: TypeAlias = dict[str, Any]  # a field, as JSON
# The lookup's spelling of a missing category, and of any category that the training rows did not have.
MISSING_CATEGORY = "[UNK]"
# NumPy's names for the units in which a date may be counted.
UNITS = {"days": "D", "seconds": "s"}


@dataclass(frozen=True)
class Field:
    """One input or output.

    Attributes:
        name: the name that people write.
        dtype: the type of its tensor: "float32", "string", ...
        shape: the shape of one row; None where a size is free.
        tensor: the name of its tensor in the SavedModel, which must be a Python identifier (`identifiers`,
            `arguments`).
        kind: the kind of a table's column: "category", "date", ...; empty otherwise.
        unit: for a date: what is counted since 1970.
        missing: for a category: the text that null is looked up as.
        reading: for a table's column: how its cells are read; None in bundles written before readings existed.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    tensor: str
    kind: str = ""
    unit: str = ""
    missing: str = MISSING_CATEGORY
    reading: CellReading | None = None

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name} {self.dtype}" + (f" [{sizes}]" if self.shape else "")

    @property
    def sizes(self) -> tuple[int | None, ...] | None:
        """The shape of its tensor, including the rows; None if even the number of dimensions is free."""
        return (None, *self.shape)


@dataclass(frozen=True)
class TensorField(Field):
    """An input or output of a model that Stoker did not export: a whole tensor, which may have no rows.

    Attributes:
        declared: the shape in the model's signature. None if it declares none.
    """

    declared: tuple[int | None, ...] | None = None

    def __str__(self) -> str:
        sizes = (
            ["..."] if self.declared is None else ["?" if one is None else str(one) for one in self.declared]
        )
        return f"{self.name} {self.dtype} [{', '.join(sizes)}]"

    @property
    def sizes(self) -> tuple[int | None, ...] | None:
        return self.declared


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs in order."""

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]

    def to_json(self) -> dict[str, list[FieldRow]]:
        """Return the signature as `bundle.json` stores it."""
        return {
            "inputs": [_row(one) for one in self.inputs],
            "outputs": [_row(one) for one in self.outputs],
        }

    @staticmethod
    def from_json(data: dict[str, list[FieldRow]]) -> Signature:
        """Read what `to_json` returned.

        Raises:
            KeyError, TypeError: the data is not a signature.
        """
        return Signature(_fields(data["inputs"]), _fields(data["outputs"]))


def _row(field: Field) -> FieldRow:
    """Return a field as JSON. Defaults of fields added later are left out, so that most bundles stay as they were."""
    row = asdict(field)
    if field.missing == MISSING_CATEGORY:
        del row["missing"]
    del row["reading"]
    return row if field.reading is None else {**row, "reading": field.reading.to_json()}


def _field(row: FieldRow) -> Field:
    reading = row.get("reading")
    read = None if reading is None else CellReading.from_json(reading)
    return Field(**{**row, "shape": tuple(row["shape"]), "reading": read})


def _fields(rows: list[FieldRow]) -> tuple[Field, ...]:
    found = tuple(map(_field, rows))
    for field in found:
        texts = (field.name, field.dtype, field.tensor, field.kind, field.unit, field.missing)
        if not all(isinstance(one, str) for one in texts):
            raise TypeError("a field's name, type or kind is not text")
        if not all(one is None or (type(one) is int and one >= 0) for one in field.shape):
            raise TypeError(f"{field.name!r} has an invalid size")
    if len({field.name for field in found}) != len(found) or not found:
        raise TypeError("there are no fields, or two of the same name")
    return found


def identifiers(names: Iterable[str]) -> list[str]:
    """Return a unique Python identifier for each name; a name that already is one stays unchanged."""
    found: list[str] = []
    for name in names:
        found.append(_free(_identifier(name), found))
    return found


def arguments(names: Iterable[str]) -> list[str]:
    """Return unique names for the inputs of a SavedModel, for which TensorFlow has more rules.

    An argument is also a node of the graph: it must not begin with an underscore, and `x` and `X` are the same name.
    """
    found: list[str] = []
    for name in names:
        plain = _identifier(name)
        plain = f"tensor{plain}" if plain[0] == "_" else plain
        found.append(_free(plain, [one.lower() for one in found], str.lower))
    return found


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if plain[0].isdigit() or keyword.iskeyword(plain) or plain == "self":
        plain = f"_{plain}"
    return plain


def _free(plain: str, taken: Collection[str], folded: Callable[[str], str] = str) -> str:
    """Return the name, numbered if it is taken."""
    number, free = 1, plain
    while folded(free) in taken:
        number += 1
        free = f"{plain}_{number}"
    return free
