"""The library's only logger, `logging.getLogger("stoker")`: everything that Stoker says without being asked to.

By default, each record is one line on stderr, `stoker: ...`. Lines that a training shows between Keras' progress bars
go through the child logger `stoker.progress` to stdout, as Keras' own lines do. Standard logging changes both:

    logging.getLogger("stoker").setLevel(logging.WARNING)       # no progress
    logging.getLogger("stoker").setLevel(logging.CRITICAL)      # nothing at all
    logging.getLogger("stoker").addHandler(mine)                # before the import: instead of this; after: as well

Modules import `LOGGER` or `PROGRESS` from here. Commands answer through `stoker.printing`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from stoker.units import printable

NAME = "stoker"
# With `extra=REPLACED`, the next line of progress replaces this one. For terminals only.
REPLACED = {"is_replaced": True}


class LineHandler(logging.Handler):
    """Writes a record as one line to the present stdout or stderr. A closed stream is not an error."""

    def __init__(self) -> None:
        super().__init__()
        self._is_line_open = False

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError, AttributeError):
            if record.name == PROGRESS.name:
                self._show_progress(record)
            else:
                sys.stderr.write(f"{NAME}: {printable(record.getMessage())}\n")

    def _show_progress(self, record: logging.LogRecord) -> None:
        clear = "\r\033[K" if self._is_line_open else ""
        self._is_line_open = hasattr(record, "is_replaced")
        text = f"{clear}{printable(record.getMessage(), lines=True)}{'' if self._is_line_open else chr(10)}"
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.write(text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding))
        sys.stdout.flush()


def _prepare_logger() -> logging.Logger:
    """Return the logger, with our handler unless the program has configured one already."""
    logger = logging.getLogger(NAME)
    if not logger.handlers:
        logger.addHandler(LineHandler())
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
        # Otherwise, a program with a handler on the root logger would show each line twice.
        logger.propagate = False
    return logger


LOGGER = _prepare_logger()
PROGRESS = logging.getLogger(f"{NAME}.progress")


@contextmanager
def use_handler(handler: logging.Handler) -> Iterator[None]:
    """Use `handler` in place of our own, and close it at the end. Handlers that the program added stay."""
    replaced = [one for one in LOGGER.handlers if isinstance(one, LineHandler)]
    for one in replaced:
        LOGGER.removeHandler(one)
        LOGGER.addHandler(handler)
    try:
        yield
    finally:
        handler.close()
        for one in replaced:
            LOGGER.removeHandler(handler)
            LOGGER.addHandler(one)
