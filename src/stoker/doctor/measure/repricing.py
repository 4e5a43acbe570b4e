"""The prices of a saved run, measured again: this process rebuilds and times the steps that the run kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from stoker.doctor.pricing.prices import price_record
from stoker.doctor.probes.device import cpu_name
from stoker.errors import RecordError
from stoker.processors import usable_cores
from stoker.records import ExperimentRow, Record
from stoker.tracking.store import record_files
from stoker.units import quantity


def price_again(
    record: Record, path: Path, seconds: float | None, say: Callable[[float], None]
) -> tuple[Record, list[ExperimentRow]]:
    """Return the record with its repairs timed again for at most `seconds` (None: the default time), and the new rows.

    Raises:
        RecordError: the run kept no step, or another machine or another TensorFlow would time it.
    """
    place = record_files.steps_path_of(path)
    if not place.exists():
        raise RecordError(
            f"the run {record.id} kept no step: run it again with `stoker run --keep-step`, or see `stoker whatif`"
        )
    _check_surroundings(record)
    # Imported here, because it imports TensorFlow.
    from stoker.doctor.experiments.laboratory import ExperimentTerms, run_experiments
    from stoker.doctor.experiments.saving import read_steps

    rows = run_experiments(record, read_steps(place), ExperimentTerms(seconds, say))
    timed = {row.key: row for row in rows if not row.failed}
    # What could not be timed again keeps its earlier time.
    before = {row.key: row for row in (*rows, *record.tables.experiments)}
    tables = dataclasses.replace(record.tables, experiments=list({**before, **timed}.values()))
    return price_record(dataclasses.replace(record, tables=tables)), rows


def _check_surroundings(record: Record) -> None:
    """Check that times of this process can be compared with those of the run."""
    import tensorflow as tf

    phase = record.tables.stepping_phase
    here = f"{cpu_name()}, {quantity(usable_cores(), 'core')}"
    there = f"{record.device.name}, {quantity(phase.cores if phase is not None else 0, 'core')}"
    if here != there:
        raise RecordError(f"the run {record.id} was on another machine ({there}, not {here}): price it there")
    wanted = record.versions.get("tensorflow", "")
    if tf.__version__ != wanted:
        raise RecordError(
            f"the run {record.id} was with TensorFlow {wanted}, and {tf.__version__} is installed: run it again"
        )
