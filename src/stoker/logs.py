"""The library's one logger, `logging.getLogger("stoker")`: what Stoker says when no command of its own is running.

By default, warnings and errors reach stderr as one line each, `stoker: ...`. Standard logging changes that:

    logging.getLogger("stoker").setLevel(logging.CRITICAL)      # silence it
    logging.getLogger("stoker").addHandler(mine)                # before the import: instead of stderr; after: as well

Modules import `LOGGER` from here. Commands print; they do not log.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

from stoker.units import printable

NAME = "stoker"


class StderrLineHandler(logging.Handler):
    """Writes a record as one line to whatever stderr is at that moment; a stderr that is closed is no error."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{NAME}: {printable(record.getMessage())}\n")


def _prepare_logger() -> logging.Logger:
    """The logger, with our handler unless the program has configured one already."""
    logger = logging.getLogger(NAME)
    if not logger.handlers:
        logger.addHandler(StderrLineHandler(logging.WARNING))
        # A program with a handler on the root logger would otherwise show each line twice.
        logger.propagate = False
    return logger


LOGGER = _prepare_logger()
