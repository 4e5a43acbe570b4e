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

Entry = list[Any]


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
