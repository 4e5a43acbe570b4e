"""Export runs to TensorBoard's event files, one directory per run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stoker.tracking.store import event_files
from stoker.tracking.store.event_files import Scalar
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.schema import RunRow


def export(reader: Reader, rows: list[RunRow], directory: Path) -> list[Path]:
    """Write runs, and return the files."""
    made = []
    for row in rows:
        name = re.sub(r"[^\w.-]+", "_", f"{row.name}-{row.id}".strip("-"))
        path = directory / name / f"events.out.tfevents.{int(row.started)}.stoker"
        event_files.write(path, _read_scalars(reader, row), row.started)
        made.append(path)
    return made


def _read_scalars(reader: Reader, row: RunRow) -> Iterator[Scalar]:
    for name in row.series:
        for step, at, value in reader.points(row.id, name):
            yield Scalar(name, step, at, value)
