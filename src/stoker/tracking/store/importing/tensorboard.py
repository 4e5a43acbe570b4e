"""Import TensorBoard's event files. As in TensorBoard, every directory with event files is a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stoker.errors import UsageError
from stoker.tracking.store import event_files
from stoker.tracking.store.importing.imported_run import ImportedRun, make_id

_FILES = "*tfevents*"


def has_runs(directory: Path) -> bool:
    """Return whether there are event files in or below a directory."""
    return next(directory.rglob(_FILES), None) is not None


def read_runs(directory: Path) -> Iterator[ImportedRun]:
    """Read the runs of a directory of logs.

    Raises:
        UsageError: a file cannot be read.
    """
    for place in sorted({file.parent for file in directory.rglob(_FILES)}):
        series: dict[str, list[tuple[int, float, float]]] = {}
        try:
            for file in sorted(place.glob(_FILES)):
                for scalar in event_files.read(file):
                    series.setdefault(scalar.tag, []).append((scalar.step, scalar.time, scalar.value))
        except OSError as error:
            raise UsageError(f"{place} cannot be read ({error.strerror}): make it readable") from None
        times = [at for points in series.values() for _, at, _ in points]
        if not times:
            continue
        inner = place.relative_to(directory).as_posix()
        columns = {
            "name": place.resolve().name if inner == "." else inner,
            "started": min(times),
            "ended": max(times),
            "seen": max(times),
            "steps": max(points[-1][0] for points in series.values()),
        }
        source = str(place.resolve())
        yield ImportedRun(make_id(f"tensorboard {source}"), source, columns, series)
