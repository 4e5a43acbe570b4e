"""The files of a job's checkpoint, deleted, cut short and mixed up: what counts is whole, or an earlier one."""

from __future__ import annotations

import queue
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from stoker.train.checkpoint import job
from stoker.train.checkpoint.directory import CheckpointDirectory, list_finished, parts_of
from stoker.train.checkpoint.options import Checkpoint, CheckpointWarning
from stoker.train.workers.copies import ReplicaPart
from stoker.train.workers.group import Group

pytestmark = pytest.mark.tensorflow


class OfTwo(Group):
    """Workers that speak through a queue instead of a cluster: the files are what this is about."""

    count = 2

    def __init__(self, rank: int, said: queue.Queue[Any]) -> None:
        super().__init__()
        self.rank, self._said = rank, said

    def ask_chief(self, value: Callable[[], Any]) -> Any:
        if self.chief:
            self._said.put(value())
            return value()
        return self._said.get()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Two checkpoints of two workers, of steps 10 and 20, in which every variable holds its step."""
    said: queue.Queue[Any] = queue.Queue()
    weight, ours, theirs = (tf.Variable(0.0) for _ in range(3))
    options = Checkpoint(tmp_path)
    chief = job.ChiefSaver(
        options, {"weight": weight, "seen": ReplicaPart(ours)}, "same", group=OfTwo(0, said)
    )
    worker = job.WorkerSaver(
        options, {"weight": weight, "seen@1": ReplicaPart(theirs)}, "same", group=OfTwo(1, said)
    )
    for saver in (chief, worker):
        saver.replicas = 2
    for step in (10, 20):
        for variable in (weight, ours, theirs):
            variable.assign(step)
        chief.save(step, {"step": step})
        worker.save(step, {"step": step}, wait=True)
        chief.wait()
    chief.close()
    return tmp_path


def found_in(directory: Path) -> Any:
    owned = CheckpointDirectory(directory)
    try:
        return job.read_newest(owned, set(), Group())
    finally:
        owned.release()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES: dict[str, Callable[[Path, Path], Any]] = {
    "the manifest deleted": lambda newest, before: newest.unlink(),
    "the manifest cut short": lambda newest, before: cut_short(newest),
    "a worker's file deleted": lambda newest, before: parts_of(newest)[0].unlink(),
    "a worker's file cut short": lambda newest, before: cut_short(parts_of(newest)[0]),
    "a worker's file of another step": lambda newest, before: shutil.copy(
        parts_of(before)[0], parts_of(newest)[0]
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.filterwarnings(f"ignore::{CheckpointWarning.__module__}.{CheckpointWarning.__qualname__}")
def test_what_is_not_whole_is_passed_over_and_steps_are_never_mixed(saved: Path, damage: str) -> None:
    before, newest = list_finished(saved)
    assert found_in(saved).step == 20
    DAMAGES[damage](newest, before)
    found = found_in(saved)
    assert (found.step, found.progress) == (10, {"step": 10})
    assert {name: float(value) for name, value in found.variables.items()} == {
        "weight": 10.0,
        "seen": 10.0,
        "seen@1": 10.0,
    }
