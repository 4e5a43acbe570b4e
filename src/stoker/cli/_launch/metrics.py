"""`stoker launch --metrics`: the job's ledger in a file that Prometheus' node_exporter collects."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from stoker.errors import UsageError
from stoker.files import write_atomically
from stoker.goodput.ledger import Price
from stoker.printing import print_note

# As often as Prometheus usually asks.
_EVERY_S = 15.0
SUFFIX = ".prom"


@contextlib.contextmanager
def keep_metrics(file: str | None, directory: Path, price: Price | None) -> Iterator[None]:
    """Write the metrics of the job again and again, and once more at its end; without a file, do nothing.

    Args:
        file: what node_exporter collects.
        directory: the job's.
        price: what one worker costs.
    """
    if file is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_write_often, args=(Path(file), directory, price, ended), name="metrics")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check_file(file: str | None) -> None:
    """Refuse a file that nobody would collect, or that cannot be written.

    Raises:
        UsageError: it is one.
    """
    if file is None:
        return
    if not file.endswith(SUFFIX):
        raise UsageError(f"--metrics {file!r}: node_exporter reads only files that end in {SUFFIX}")
    if not Path(file).parent.is_dir():
        raise UsageError(f"--metrics {file!r}: there is no directory {Path(file).parent}")


def _write_often(file: Path, directory: Path, price: Price | None, ended: threading.Event) -> None:
    over = False
    while not over:
        over = ended.wait(_EVERY_S)
        try:
            _write(file, directory, price)
        except UsageError:
            # No event is there yet, or none can be written; the job's view has said so.
            continue
        except OSError as error:
            print_note(f"cannot write {file} ({error.strerror}): this job has no metrics")
            return


def _write(file: Path, directory: Path, price: Price | None) -> None:
    from stoker.goodput.fold import fold
    from stoker.goodput.history import read_history
    from stoker.goodput.prometheus import format_metrics

    write_atomically(file, format_metrics(fold(directory.name, read_history(directory)), price))
