"""Writes the files beside it: the places of iterators, and checkpoints of interrupted runs.

    PYTHONPATH=<the sources of that version>:<this repository> python -m tests.data.old_files.make

The files in the repository were made before `stoker.data.order.VERSION` was 2, and stay as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.data.old_files import runs

HERE = Path(__file__).parent


def main() -> None:
    _save_place("many-7", runs.many_rows(), 7)
    for shuffle, taken in runs.PLACES:
        name = runs.name(shuffle, taken)
        _save_place(name, runs.rows(shuffle), taken)
        shutil.rmtree(HERE / name, ignore_errors=True)
        try:
            runs.train(HERE / name, shuffle, taken, interrupted=True)
        except runs.Interrupted:
            (HERE / name / "lock").unlink()


def _save_place(name: str, dataset: Any, taken: int) -> None:
    iterator = iter(dataset)
    for _ in range(taken):
        next(iterator)
    tf.train.Checkpoint(iterator=iterator).write(str(HERE / "iterators" / name))


if __name__ == "__main__":
    main()
