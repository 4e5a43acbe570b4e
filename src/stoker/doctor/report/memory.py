"""The memory book on the terminal: one line under the ledger, and the table of owners on request."""

from __future__ import annotations

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from stoker.doctor.report.words import short_path
from stoker.records import ROLES, DeviceMemory, MemoryOwner, Record
from stoker.units import quantity, size

_ROLES_SHOWN = 4
_ROWS_SHOWN = 30
# An owner with less than this share of the peak has no row of its own.
_ROW = 0.003
_LAYER = 20
_HEADS = ("bytes", "share", "role", "line", "layer", "largest")
_STYLES = ("", "", "", "cyan", "", "bright_black")
_LEAST = 8
# A role with less than this share of the peak is not mentioned on the line.
_SMALL = 0.01
# The peak of the whole run is mentioned if it is this much higher than that of a window.
_HIGHER = 1.05
NO_DEVICE = (
    "The program ran on the CPU. TensorFlow reports allocations of GPUs and of the software GPU only: "
)
_TRY = "run it with --device software-gpu."
NO_WINDOW = "The program ended before it had made a few steps."


def group_by_role(book: DeviceMemory) -> list[tuple[str, list[MemoryOwner]]]:
    """Group the owners by role, the largest role first. Owners stay in their order."""
    found = [(role, [owner for owner in book.at_peak if owner.role == role]) for role in ROLES]
    return sorted((item for item in found if item[1]), key=lambda item: -role_bytes(item[1]))


def role_bytes(owners: list[MemoryOwner]) -> int:
    """Return the bytes that these owners hold together."""
    return sum(owner.bytes for owner in owners)


def place_of(owner: MemoryOwner) -> str:
    """Return an owner's line and layer, as far as known: `train.py:48 conv2d_1`."""
    where = f"{short_path(owner.file)}:{owner.line}" if owner.file else ""
    return f"{where} {owner.layer.rsplit('/', 1)[-1]}".strip()


def memory_lines(record: Record) -> list[str]:
    """Return one line for each device: how much of its memory was in use at the peak, and by which roles."""
    books = record.memory_book.device if record.memory_book is not None else []
    return [line_of_book(book, many=len(books) > 1) for book in books]


def line_of_book(book: DeviceMemory, many: bool = False) -> str:
    """Say how much of a device's memory was in use at the peak, and by which roles; `many` names the device."""
    parts = []
    for role, owners in group_by_role(book)[:_ROLES_SHOWN]:
        held = role_bytes(owners)
        if held < _SMALL * book.peak_bytes:
            break
        place = place_of(owners[0])
        named = f" ({place} {size(owners[0].bytes)})" if place and len(owners) > 1 else f" ({place})"
        parts.append(f"{role} {size(held)}{named if place else ''}")
    device = f" on {book.device}" if many else ""
    line = f"memory{device}: {size(book.peak_bytes)} of {size(book.capacity_bytes)} at the peak of a step: "
    line += ", ".join(parts)
    if book.run_peak_bytes > _HIGHER * book.peak_bytes:
        line += f". The run's highest peak, {size(book.run_peak_bytes)}, was outside the recorded steps"
    return line


def failure_lines(record: Record) -> list[str]:
    """Say what happened when memory ran out: the failed allocation, what was in memory, what would need less."""
    failed = record.memory_book.failed if record.memory_book is not None else None
    if failed is None:
        return []
    wanted = f"{size(failed.bytes)} for {failed.dtype}{failed.shape}"
    where = f"{short_path(failed.file)}:{failed.line}" if failed.file else failed.op
    layer = f" (layer {failed.layer})" if failed.layer else ""
    lines = [f"Out of memory on {failed.device}: no {wanted} at {where}{layer}."]
    if failed.batch is not None and failed.largest_batch is not None and failed.largest_batch < failed.batch:
        fits = f"At most {failed.largest_batch:,} fit" if failed.largest_batch else "Not even one fits"
        lines.append(
            f"The batch has {quantity(failed.batch, 'row')}. {fits}, judging by what the step had allocated until then."
        )
    if failed.savings:
        listed = "; ".join(f"{one.change}: {size(one.bytes)}" for one in failed.savings)
        lines.append(f"Roughly what each change would save: {listed}.")
    return lines


def render_memory(record: Record, width: int) -> RenderableType:
    """Render the owners of each device's memory, largest first."""
    if record.memory_book is None:
        missing = NO_DEVICE + _TRY if record.device.kind == "CPU" else NO_WINDOW
        return Text(f"No memory book. {missing}", style="yellow")
    parts: list[RenderableType] = []
    for book in record.memory_book.device:
        head = f"{book.device}: {size(book.peak_bytes)} of {size(book.capacity_bytes)} at the peak of a step"
        free = f", {book.fragmentation:.0%} of the free memory outside of its largest piece"
        parts += [
            Text(head, style="bold").append(free, style="not bold bright_black"),
            _table(book, width),
            Text(),
        ]
    return Group(*parts)


def _table(book: DeviceMemory, width: int) -> Table:
    shown = [owner for owner in book.at_peak[:_ROWS_SHOWN] if owner.bytes >= _ROW * book.peak_bytes]
    rows = [_cells(owner, book.peak_bytes) for owner in shown]
    rest = book.at_peak[len(shown) :]
    if rest:
        held = role_bytes(rest)
        rows.append((size(held), f"{held / book.peak_bytes:.1%}", f"{len(rest)} more", "", "", ""))
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bright_black")
    widths = [max(len(cell) for cell in column) for column in zip(_HEADS, *rows, strict=True)]
    # On a narrow terminal, the last column shrinks.
    widths[-1] = max(_LEAST, min(widths[-1], width - sum(widths[:-1]) - 2 * (len(_HEADS) - 1)))
    for name, style, wide in zip(_HEADS, _STYLES, widths, strict=True):
        side: JustifyMethod = "right" if name in ("bytes", "share") else "left"
        table.add_column(name, style=style, justify=side, no_wrap=True, width=wide, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def _cells(owner: MemoryOwner, peak: int) -> tuple[str, ...]:
    where = f"{short_path(owner.file)}:{owner.line}" if owner.file else ""
    layer = owner.layer if len(owner.layer) <= _LAYER else "…" + owner.layer[1 - _LAYER :]
    largest = owner.largest.dtype + owner.largest.shape or owner.largest.op
    return size(owner.bytes), f"{owner.bytes / peak:.1%}", owner.role, where, layer, largest
