"""What is logged, as plain values: the writer's queue, the spool's lines and `applying` speak of nothing else.

An entry is a list whose first item says what it is:

    ["run", id, columns]                          a run begins
    ["change", id, columns]                       something about it changes: its state, its parameters
    ["values", id, step, time, {name: value}]     values at a step
    ["ledger", id, {account: seconds}]            replaces what there was
    ["findings", id, [finding, ...]]              replaces what there was
    ["artifact", id, relation, columns]           the run uses or makes it
    ["audit", time, event, id, details]           something worth keeping for good
    ["seen", [id, ...], time]                     these runs are alive
    ["delete", id]                                a run goes, with its values
"""

from __future__ import annotations

import json
import math
from typing import Any

from stoker import redaction

# Where something is and what it is: a name that is changed there no longer names it.
_EXACT = frozenset({"hash", "path", "files"})

Entry = list[Any]


# What follows the kind, by type.
_SHAPES: dict[str, tuple[type | tuple[type, ...], ...]] = {
    "run": (str, dict),
    "change": (str, dict),
    "values": (str, int, (int, float), dict),
    "ledger": (str, dict),
    "findings": (str, list),
    "artifact": (str, str, dict),
    "audit": ((int, float), str, (str, type(None)), dict),
    "seen": (list, (int, float)),
    "delete": (str,),
}


def is_entry(value: Any) -> bool:
    """Whether this has the shape of an entry: what was read from a file may be anything."""
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return False
    shape = _SHAPES.get(value[0])
    if shape is None or len(value) != len(shape) + 1:
        return False
    if not all(isinstance(part, kind) for part, kind in zip(value[1:], shape, strict=True)):
        return False
    # SQLite would take text for a number.
    return value[0] not in ("values", "ledger") or all(
        isinstance(one, int | float) for one in value[-1].values()
    )


def redact(entry: Entry) -> Entry:
    """An entry without the secrets that its text has; values and times are as they were."""
    kind = entry[0]
    if kind in ("run", "change"):
        return [*entry[:2], _redact_columns(entry[2])]
    if kind == "findings":
        return [*entry[:2], redaction.redact(entry[2])]
    if kind in ("artifact", "audit"):
        return [*entry[:-1], _redact_columns(entry[-1])]
    return entry


def _redact_columns(columns: dict[str, Any]) -> dict[str, Any]:
    redacted = redaction.redact({name: value for name, value in columns.items() if name not in _EXACT})
    if "arguments" in columns:
        redacted["arguments"] = redaction.redact_arguments(columns["arguments"])
    return {name: redacted.get(name, value) for name, value in columns.items()}


def compact(value: Any) -> str:
    """JSON that both databases can look into, the same text for the same value: what is not finite is a word."""
    return json.dumps(
        finite(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def finite(value: Any) -> Any:
    """The value as JSON can hold it: text without what a database refuses, everything unknown as its `repr`."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(name)): finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [finite(inner) for inner in value]
    # NumPy's numbers know their Python equals.
    plain = getattr(value, "item", None)
    if callable(plain) and getattr(value, "shape", None) == ():
        return finite(plain())
    return text(repr(value))


def text(value: str) -> str:
    """Text that both databases take: no NUL characters, no halves of surrogate pairs."""
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
