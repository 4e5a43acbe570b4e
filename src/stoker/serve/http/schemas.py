"""JSON schemas of a model's inputs and outputs, for the OpenAPI document, as strict as the checks in the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from stoker.serve.images import takes_files
from stoker.serve.plane.served import ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.signature import Field, TensorField
from stoker.serve.table_cells import is_table

Schema = dict[str, object]
Content = Mapping[str, Schema]
"""Schemas by media type."""

_ENCODED: Schema = {
    "type": "object",
    "description": "Bytes in base64.",
    "properties": {"b64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["b64"],
    "additionalProperties": False,
}
_WHOLE = re.compile(r"(u?)int(\d+)")
# The place of the components in the document.
_COMPONENTS = "#/components/schemas/"


def of_json(schema: Schema) -> Content:
    """Describe a body that is JSON."""
    return {"application/json": schema}


def of_object(**properties: Schema) -> Schema:
    """Describe an object that has all of these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def of_list(items: Schema, **more: object) -> Schema:
    """Describe a list."""
    return {"type": "array", "items": items, **more}


def any_of(schemas: Sequence[Schema]) -> Schema:
    """Describe a value that fits one of these schemas."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _nest(schema: Schema, sizes: Sequence[int | None]) -> Schema:
    for size in reversed(sizes):
        schema = of_list(schema, **({} if size is None else {"minItems": size, "maxItems": size}))
    return schema


def _scalar_given(dtype: str, longest: int) -> Schema:
    """Describe a value in a request."""
    if dtype == "string":
        return {"anyOf": [{"type": "string", "maxLength": longest}, _ENCODED]}
    whole = _WHOLE.fullmatch(dtype)
    if whole:
        sign, bits = int(not whole[1]), int(whole[2])
        least, most = -sign << (bits - 1), (1 << (bits - sign)) - 1
        return {"type": "integer", "minimum": least, "maximum": most}
    if dtype == "bool":
        return {"anyOf": [{"enum": [0, 1]}, {"type": "boolean"}]}
    return {"type": "number"} if "float" in dtype else {}


def _scalar_answered(dtype: str) -> Schema:
    if dtype == "string":
        return {"type": "string"}
    if _WHOLE.fullmatch(dtype):
        return {"type": "integer"}
    return (
        {"type": "boolean"} if dtype == "bool" else {"type": ["number", "null"]} if "float" in dtype else {}
    )


def list_components(fields: Iterable[Field], settings: ServerSettings) -> dict[str, Schema]:
    """List what these fields' schemas refer to: tensors of a model from elsewhere, values or lists of any depth."""
    found = {}
    for one in fields:
        if isinstance(one, TensorField):
            for name, scalar in (
                (f"given_{one.dtype}", _scalar_given(one.dtype, settings.string_bytes)),
                (f"answered_{one.dtype}", _scalar_answered(one.dtype)),
            ):
                found[name] = any_of([scalar, of_list({"$ref": _COMPONENTS + name})])
    return found


def input_value(field: Field, settings: ServerSettings) -> Schema:
    """Describe the value of an input in a row."""
    if isinstance(field, TensorField):
        return {"$ref": f"{_COMPONENTS}given_{field.dtype}"}
    if field.reading is not None or field.kind:
        return {"type": ["number", "string", "boolean", "null"]}  # a cell as it appears in its file
    pixels = _nest(_scalar_given(field.dtype, settings.string_bytes), field.shape)
    return {"anyOf": [_ENCODED, pixels]} if takes_files(field) else pixels


def input_column(field: Field, settings: ServerSettings) -> Schema:
    """Describe the values of an input for all rows."""
    value = input_value(field, settings)
    return value if isinstance(field, TensorField) else of_list(value, minItems=1, maxItems=settings.rows)


def output_value(field: Field) -> Schema:
    """Describe the value of an output for one row."""
    if not isinstance(field, TensorField):
        return _nest(_scalar_answered(field.dtype), field.shape)
    if field.dtype == "string" and field.name.endswith("_bytes"):
        return {"description": "Bytes in base64, in lists of any depth."}
    return {"$ref": f"{_COMPONENTS}answered_{field.dtype}"}


def output_column(field: Field) -> Schema:
    """Describe the values of an output for all rows."""
    return output_value(field) if isinstance(field, TensorField) else of_list(output_value(field))


def input_row(signature: ServedSignature, settings: ServerSettings, partial: bool = False) -> Schema:
    """Describe a row as an object. A table's row may have other columns, and cells may be missing."""
    fields = signature.inputs
    row: Schema = {"type": "object", "properties": {one.name: input_value(one, settings) for one in fields}}
    if is_table(fields):
        return row
    if not partial:
        row["required"] = [one.name for one in fields]
    return {**row, "additionalProperties": False}
