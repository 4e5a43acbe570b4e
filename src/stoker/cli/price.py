"""Time the repairs of a saved run again, and update its prices.

The run must have kept its step (`stoker run --keep-step`). The step is rebuilt in a new process, as it was and as
repaired. If both compute the same, the repair is timed, and the record gets the new price. The options of `stoker
whatif` work here, too.

    stoker price                                    # the last run
    stoker price latest --experiments 60s           # with more time
    stoker price 20261115-2107 --batch 4x --workers 8
"""

from __future__ import annotations

import argparse

from stoker.chatter import quiet_tensorflow
from stoker.cli import whatif
from stoker.cli._options import add_experiments
from stoker.errors import UsageError
from stoker.printing import print_note
from stoker.tracking.store import record_files


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker price [ID] [--experiments TIME]`, and those of `stoker whatif`."""
    add_experiments(
        parser, "how long repairs may be timed, such as 60s (a tenth of the run, from 2 s to 20 s)"
    )
    whatif.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Time the repairs, save the prices, and answer as `stoker whatif` does."""
    if args.experiments == 0.0:
        raise UsageError("--experiments off times nothing: `stoker whatif` prices the run as it is saved")
    path = record_files.resolve(args.id)
    record = record_files.read(path)
    try:
        with quiet_tensorflow():
            import tensorflow  # noqa: F401 - its chatter is not part of the answer
    except ModuleNotFoundError:
        raise UsageError("stoker price needs TensorFlow: install it with pip install 'stoker[cpu]'") from None
    from stoker.doctor.measure.repricing import price_again

    priced, rows = price_again(record, path, args.experiments, _say)
    for row in rows:
        if row.failed:
            print_note(f"{row.kind} {row.file}:{row.line} was not timed: {row.failed}")
    record_files.write(priced, path)
    args.id = str(path)
    return whatif.run(args)


def _say(seconds: float) -> None:
    print_note(f"timing the repairs for about {seconds:.0f} s (Ctrl-C skips the rest)")
