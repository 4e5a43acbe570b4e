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

# Prometheus usually asks this often.
_EVERY_S = 15.0
SUFFIX = ".prom"


@contextlib.contextmanager
def keep_metrics(file: str | None, directory: Path, price: Price | None) -> Iterator[None]:
    """Write the metrics of the job repeatedly, and once more at its end. Without a file, do nothing.

    Args:
        file: the file that node_exporter collects.
        directory: the job's directory.
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
        UsageError: it is such a file.
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
            # There are no events yet, or they cannot be written, which the job's view has already reported.
            continue
        except OSError as error:
            print_note(f"cannot write {file} ({error.strerror}): this job has no metrics")
            return


def _write(file: Path, directory: Path, price: Price | None) -> None:
    from stoker.goodput.fold import fold
    from stoker.goodput.history import read_history
    from stoker.goodput.prometheus import format_metrics

    write_atomically(file, format_metrics(fold(directory.name, read_history(directory)), price))
