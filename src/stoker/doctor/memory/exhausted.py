"""The explanation when memory runs out: the allocation that failed, and roughly what each change would save."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.memory.book import first_side
from stoker.doctor.memory.owners import Owner
from stoker.records import DeviceMemory, FailedAllocation, Saving

_MESSAGE = re.compile(
    r"OOM when allocating tensor with shape(?P<shape>\[[\d,]*\]) and type (?P<type>\w+) "
    r"on \S*device:(?P<device>GPU:\d+)"
)
# `{{node dense/MatMul}}`, `Detected at node dense/MatMul defined at`, `[Op:MatMul]`
_NODES = (
    re.compile(r"\{\{node (?P<op>[^}]+)\}\}"),
    re.compile(r"Detected at node '?(?P<op>[^\s']+)'? defined at"),
    re.compile(r"\[Op:(?P<op>\w+)\]"),
)
# The Python names of types, by their names in TensorFlow's C++.
_TYPES = {
    "float": ("float32", 4),
    "half": ("float16", 2),
    "bfloat16": ("bfloat16", 2),
    "double": ("float64", 8),
    "int32": ("int32", 4),
    "int64": ("int64", 8),
    "int8": ("int8", 1),
    "uint8": ("uint8", 1),
    "bool": ("bool", 1),
}
_PARTS = (2, 4)
# A change that saves less than this share of the memory in use is not worth mentioning.
_WORTH = 0.02


@dataclass(frozen=True)
class Refusal:
    """The failed allocation, as TensorFlow's error describes it."""

    device: str
    shape: str
    dtype: str
    bytes: int
    op: str


def error_texts(error: BaseException) -> Iterator[str]:
    """Yield the message of an error, and the messages of the errors that led to it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield str(current)
        current = current.__cause__ or current.__context__


def read_refusal(message: str) -> Refusal | None:
    """Return the allocation that an error message is about; None if it is not about one on a device."""
    found = _MESSAGE.search(message)
    if found is None:
        return None
    dtype, width = _TYPES.get(found["type"], (found["type"], 4))
    sides = [int(side) for side in found["shape"].strip("[]").split(",") if side]
    node = next((match["op"] for pattern in _NODES if (match := pattern.search(message))), "")
    return Refusal(f"/{found['device']}", found["shape"], dtype, math.prod(sides) * width, node)


def describe_failure(
    refusal: Refusal, owner: Owner, site: SiteKey | None, book: DeviceMemory | None
) -> FailedAllocation:
    """Return the failed allocation with its line, and what would need less memory."""
    file, line, function = owner.site or site or ("", 0, "")
    batch = book.batch if book is not None else None
    return FailedAllocation(
        refusal.device,
        refusal.shape,
        refusal.dtype,
        refusal.bytes,
        refusal.op,
        shown_path(file) if file else "",
        line,
        function,
        owner.layer,
        batch=batch,
        largest_batch=_largest_batch(book, refusal) if book is not None else None,
        savings=_savings(book, refusal) if book is not None else [],
    )


def _largest_batch(book: DeviceMemory, refusal: Refusal) -> int | None:
    """Return the most rows that can fit. The failed step had not allocated everything yet, so it may be fewer."""
    if book.batch is None:
        return None
    growing = book.batch_bytes + _growing_part(book, refusal)
    rest = book.capacity_bytes - (book.peak_bytes - book.batch_bytes)
    return min(book.batch, max(0, int(book.batch * rest / growing))) if growing else None


def _growing_part(book: DeviceMemory, refusal: Refusal) -> int:
    side = first_side(refusal.shape)
    return refusal.bytes if book.batch and side and side % book.batch == 0 else 0


def _savings(book: DeviceMemory, refusal: Refusal) -> list[Saving]:
    """Return roughly what each change saves of the memory in use and of the requested memory, the largest first."""
    growing = book.batch_bytes + _growing_part(book, refusal)
    held = {role: sum(owner.bytes for owner in book.at_peak if owner.role == role) for role in ("optimizer",)}
    wide = sum(
        owner.bytes
        for owner in book.at_peak
        if owner.role in ("activations", "gradients") and owner.largest.dtype == "float32"
    )
    found = [Saving("mixed precision (activations in 16 bits)", wide // 2)]
    if book.batch is not None and book.batch > 1:
        found += [
            Saving(f"accumulating gradients over {parts} parts of the batch", growing - growing // parts)
            for parts in _PARTS
            if book.batch >= parts
        ]
    found.append(Saving("an optimizer without slots, such as SGD", held["optimizer"]))
    worth = [one for one in found if one.bytes >= _WORTH * book.peak_bytes]
    return sorted(worth, key=lambda one: -one.bytes)
