"""The memory book on the page: the memory of a step as a stack of roles, and the owners at its peak."""

from __future__ import annotations

from typing import Any

from stoker.doctor.report.memory import group_by_role, role_bytes
from stoker.records import ROLES, DeviceMemory, MemoryOwner, Record
from stoker.units import quantity, size

_MAX_OWNERS = 60
# From bottom to top: roles that keep their memory from step to step are below those that do not.
_STACK = ("weights", "optimizer", "constants", "input", "activations", "gradients", "workspace", "other")


def memory_book(record: Record) -> list[dict[str, Any]]:
    """Return the book of each device; empty if the run has none."""
    return [_device(book) for book in record.memory_book.device] if record.memory_book is not None else []


def _device(book: DeviceMemory) -> dict[str, Any]:
    peak = book.peak_bytes or 1
    lead = (
        f"{size(book.peak_bytes)} of {size(book.capacity_bytes)} was in use at the peak of a step, "
        f"{book.peak_bytes / (book.capacity_bytes or 1):.0%}."
    )
    if book.run_peak_bytes > 1.05 * book.peak_bytes:
        lead += f" The run's highest peak, {size(book.run_peak_bytes)}, was outside the recorded steps."
    return {
        "device": book.device,
        "lead": lead,
        "at": [point.at_ms for point in book.curve],
        "stack": _stack(book),
        "roles": [
            {
                "name": role,
                "share": role_bytes(owners) / peak,
                "size": size(role_bytes(owners)),
                "owners": [_owner(owner, peak) for owner in owners[:_MAX_OWNERS]],
            }
            for role, owners in group_by_role(book)
        ],
    }


def _stack(book: DeviceMemory) -> list[dict[str, Any]]:
    """Return, for each role with any bytes, how many it holds over the step."""
    found = []
    for role in _STACK:
        number = ROLES.index(role)
        values = [point.bytes[number] for point in book.curve if len(point.bytes) > number]
        if len(values) == len(book.curve) and any(values):
            found.append({"name": role, "values": values})
    return found


def _owner(owner: MemoryOwner, peak: int) -> dict[str, Any]:
    largest = f"largest {owner.largest.dtype}{owner.largest.shape} of {owner.largest.op}"
    known = bool(owner.largest.op and owner.largest.shape)
    facts = [quantity(owner.count, "piece"), largest if known else owner.largest.op]
    return {
        "file": owner.file,
        "line": owner.line,
        "source": "",
        "where": f"{owner.file}:{owner.line}" if owner.file else "",
        "function": owner.function,
        "layer": owner.layer,
        "role": owner.role,
        "share": owner.bytes / peak,
        "percent": f"{owner.bytes / peak:.1%}",
        "size": size(owner.bytes),
        "facts": " · ".join(fact for fact in facts if fact),
    }
