"""A memory forecast on the terminal: the peak, what fits, what grows with the batch, what each change would save."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from stoker.doctor.forecast.answer import Forecast
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.forecast.growth import OwnerShare
from stoker.doctor.report.terminal import Terminal
from stoker.doctor.report.words import short_path
from stoker.records import ROLES
from stoker.units import quantity, size

_OWNERS_SHOWN = 12
# A role with less than this share of the peak is not mentioned.
_SMALL = 0.01
# An owner with less than this share of the total growth has no row of its own.
_SLOW = 0.01
# If memory of at least this share does not follow the batch, a doubt is mentioned.
_DOUBT = 0.01
# A change of less than this share of the peak, up or down, counts as none.
_NOTHING = 0.005


def show(forecast: Forecast) -> None:
    """Print a forecast to stdout."""
    console = Terminal()
    for line in _head(forecast):
        console.print(line)
    growing = [one for one in forecast.owners_at_largest if one.bytes_per_row >= 1.0]
    if growing:
        rows = forecast.largest_batch or forecast.batch
        console.print(Text(f"\nWhat grows with the batch, at {quantity(rows, 'row')}", style="bold"))
        console.print(_growth_table(growing))
    if forecast.changes:
        console.print(Text("\nWhat each change would do, measured", style="bold"))
        console.print(_change_table(forecast))
    for reason in forecast.left_out:
        console.print(Text(f"Not measured: {reason}", style="yellow"))
    console.print(Text(f"\n{_describe_certainty(forecast)}", style="bright_black"))


def _head(forecast: Forecast) -> Iterator[Text]:
    place, limit = _describe_place(forecast.place), forecast.memory_bytes
    yield Text(f"{place} sets the batch.", style="bright_black")
    added = max(0, forecast.peak_bytes - forecast.tensor_bytes)
    yield Text(
        f"A batch of {forecast.batch:,} needs {size(forecast.peak_bytes)} at the peak: "
        f"{size(forecast.tensor_bytes)} of tensors, and {size(added)} that the allocator adds.",
        style="bold",
    )
    yield Text(f"At the peak: {_describe_roles(forecast)}.")
    if limit is None:
        yield Text("Which batch fits? Name the memory: --device-memory 16GiB, or --device-profile t4.")
        return
    largest = forecast.largest_batch or 0
    fits = "It fits" if forecast.batch <= largest else "It does not fit"
    most = (
        f"The largest batch that does has {quantity(largest, 'row')}."
        if largest
        else "Not even one row does."
    )
    if forecast.batch <= largest:
        most = f"The largest batch that fits has {quantity(largest, 'row')}."
    yield Text(f"{fits} into {size(limit)}. {most}", style="green" if forecast.batch <= largest else "red")


def _describe_place(place: BatchPlace) -> str:
    where = f"{short_path(place.file)}:{place.line}" if place.file else ""
    if place.kind == "dataset":
        return f"Dataset.batch({place.rows}) at {where}" if where else f"Dataset.batch({place.rows})"
    if place.kind == "fit":
        return f"fit(batch_size={place.rows}) at {where}"
    return f"{place.name} at {where}" if place.kind == "name" else f"The option {place.name}"


def _describe_roles(forecast: Forecast) -> str:
    held = {role: sum(one.bytes for one in forecast.owners if one.owner.role == role) for role in ROLES}
    named = sorted(held.items(), key=lambda item: -item[1])
    return ", ".join(f"{role} {size(held)}" for role, held in named if held >= _SMALL * forecast.peak_bytes)


def _growth_table(growing: list[OwnerShare]) -> Table:
    total = sum(one.bytes_per_row for one in growing)
    ordered = sorted(growing, key=lambda one: -one.bytes_per_row)
    shown = [one for one in ordered[:_OWNERS_SHOWN] if one.bytes_per_row >= _SLOW * total]
    table = _table("a row", "in all", "role", "line", "layer")
    for one in shown:
        where = f"{short_path(one.owner.file)}:{one.owner.line}" if one.owner.file else ""
        layer = one.owner.layer.rsplit("/", 1)[-1]
        table.add_row(size(one.bytes_per_row), size(one.bytes), one.owner.role, where, layer)
    rest = ordered[len(shown) :]
    if rest:
        grown, held = sum(one.bytes_per_row for one in rest), sum(one.bytes for one in rest)
        table.add_row(size(grown), size(held), f"{len(rest)} more", "", "")
    return table


def _change_table(forecast: Forecast) -> Table:
    heads = ["change", f"peak at {forecast.batch:,}", "less by"]
    table = _table(*heads, *(["largest batch"] if forecast.memory_bytes is not None else []))
    for need in forecast.changes:
        small = abs(need.saved_bytes) < _NOTHING * forecast.peak_bytes
        saved = "nothing" if small else size(need.saved_bytes)
        if need.saved_bytes < 0 and not small:
            saved = f"{size(-need.saved_bytes)} more"
        cells = [need.title, size(need.peak_bytes), saved]
        table.add_row(*cells, *([f"{need.largest_batch:,}"] if need.largest_batch is not None else []))
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bright_black")
    words = ("role", "line", "layer", "change")
    for name in heads:
        table.add_column(
            name, justify="left" if name in words else "right", no_wrap=True, overflow="ellipsis"
        )
    return table


def _describe_certainty(forecast: Forecast) -> str:
    rows = ", ".join(f"{one.rows:,}" for one in forecast.measured)
    off = forecast.uncertainty
    if off < _DOUBT:
        follows = "every allocation follows the batch"
    else:
        follows = f"{off:.0%} of the allocated bytes do not follow the batch, so this is less certain"
    where = f"Measured on the software GPU at {rows} rows: {follows}."
    return f"{where} Convolutions on a GPU may take more scratch memory."
