"""The forecast: the peak at the given batch, the largest batch that fits, which owners grow, and what changes save."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.doctor.forecast.batch_name import place_from_name
from stoker.doctor.forecast.changes import CHANGES, Change
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.forecast.growth import OwnerShare, ScalingStep
from stoker.doctor.forecast.starting import MeasuringError, ProgramRunner
from stoker.doctor.forecast.trace import StepTrace
from stoker.errors import UsageError

# The batches to measure: three, to show whether memory grows linearly; for a change, two.
ROWS = (2, 4, 8)
_ROWS_OF_CHANGE = (2, 8)
Tell = Callable[[str], None]


@dataclass(frozen=True)
class ForecastOptions:
    """The request: the device's memory, the batch, where the batch is set, and whether to measure changes."""

    memory_bytes: int | None = None
    batch: int | None = None
    batch_arg: str | None = None
    what_if: bool = True


@dataclass(frozen=True)
class MeasuredBatch:
    """A measured batch: its rows, and the peak as TensorFlow counted it."""

    rows: int
    peak_bytes: int


@dataclass(frozen=True)
class ChangedNeed:
    """The memory needed with a change: bytes at the peak of the given batch, and the largest batch that fits."""

    name: str
    title: str
    peak_bytes: int
    saved_bytes: int
    largest_batch: int | None


@dataclass(frozen=True)
class Forecast:
    """The answer to `ForecastOptions`."""

    place: BatchPlace
    batch: int
    memory_bytes: int | None
    measured: list[MeasuredBatch]
    peak_bytes: int
    # The tensors' part of the peak. The rest is what the allocator gives beyond the requested bytes.
    tensor_bytes: int
    largest_batch: int | None
    # The share of the allocated bytes, at the largest measured batch, that does not lie on the curves.
    uncertainty: float
    # Who holds the memory at the peak, at the given batch and at the largest that fits.
    owners: list[OwnerShare]
    owners_at_largest: list[OwnerShare]
    changes: list[ChangedNeed] = field(default_factory=list)
    # Changes that could not be measured, each with the reason.
    left_out: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the forecast as JSON values for other programs."""
        values = dataclasses.asdict(self)
        for name in ("owners", "owners_at_largest"):
            shares: list[OwnerShare] = getattr(self, name)
            values[name] = [
                {**one.owner._asdict(), "bytes": one.bytes, "bytes_per_row": round(one.bytes_per_row, 1)}
                for one in shares
            ]
        return values


def make_forecast(runner: ProgramRunner, options: ForecastOptions, tell: Tell) -> Forecast:
    """Measure the program at small batches and forecast what it needs at the given batch.

    Raises:
        UsageError: it is not clear where the program sets its batch, or which batch is meant.
        MeasuringError: the program failed, or never trained.
    """
    place = _find_place(runner, options, tell)
    batch = options.batch or place.rows
    if batch is None:
        raise UsageError(f"cannot tell the program's batch from {place.name}: give --batch")
    traces = []
    for rows in measured_rows(batch):
        tell(f"measuring a batch of {rows}")
        traces.append(runner.measure(place, rows))
    step = ScalingStep(traces)
    step.check_growth()
    limit = options.memory_bytes
    largest = step.largest_batch(limit) if limit is not None else None
    forecast = Forecast(
        place,
        batch,
        limit,
        [MeasuredBatch(trace.rows, trace.peak_bytes) for trace in step.traces],
        step.peak_at(batch),
        step.tensors_at(batch),
        largest,
        step.uncertainty,
        step.owners_at(batch),
        step.owners_at(largest or batch),
    )
    if not options.what_if:
        return forecast
    needs: list[ChangedNeed] = []
    left_out: list[str] = []
    for change in CHANGES:
        if change.applies_to(traces[-1]):
            tell(f"measuring {change.title}")
            try:
                needs += _measure_change(runner, change, forecast, traces[-1])
            except MeasuringError as error:
                left_out.append(f"{change.title}: {error}")
    needs.sort(key=lambda need: need.peak_bytes)
    return dataclasses.replace(forecast, changes=needs, left_out=left_out)


def measured_rows(batch: int) -> tuple[int, ...]:
    """Return the batches to measure, none larger than the given one."""
    if batch >= ROWS[-1]:
        return ROWS
    return tuple(sorted({max(1, batch // 4), max(1, batch // 2), batch}))


def _find_place(runner: ProgramRunner, options: ForecastOptions, tell: Tell) -> BatchPlace:
    if options.batch_arg is not None:
        return place_from_name(options.batch_arg, runner.target.name, runner.target.arguments)
    tell("looking for where the program sets its batch")
    place = runner.find_batch()
    if place is None:
        raise UsageError(
            "the program sets its batch neither in Dataset.batch nor in fit: name what sets it, with "
            "--batch-arg=--batch-size for an option, or --batch-arg BATCH for a name in the program"
        )
    return place


def _measure_change(
    runner: ProgramRunner, change: Change, forecast: Forecast, base: StepTrace
) -> Iterator[ChangedNeed]:
    place, limit = forecast.place, forecast.memory_bytes
    rows = [one for one in _ROWS_OF_CHANGE if one <= base.rows] or [base.rows]
    traces = [runner.measure(place, one, change.name, steps=2 if change.parts else 3) for one in rows]
    if not change.is_made(traces[-1]):
        raise MeasuringError("the program sets it by itself")
    step = ScalingStep(traces)
    for parts in change.parts or (1,):
        if forecast.batch < parts:
            continue
        peak = step.peak_at(-(-forecast.batch // parts))
        largest = parts * step.largest_batch(limit) if limit is not None else None
        title = f"{change.title}, {parts} parts" if change.parts else change.title
        name = f"{change.name}-{parts}" if change.parts else change.name
        yield ChangedNeed(name, title, peak, forecast.peak_bytes - peak, largest)
