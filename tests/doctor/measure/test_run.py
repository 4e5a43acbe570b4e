"""The books of one run, as Watch and notebooks keep them, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stoker.doctor.measure.run import MeasuredRun, finish_record
from stoker.tracking.store import record_files
from tests.samples import sample_record

tf = pytest.importorskip("tensorflow")


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def patched() -> dict[str, Any]:
    from tensorflow.python.framework import ops

    return dict(vars(ops.EagerTensor))


def reads(count: int) -> None:
    for _ in range(count):
        float(tf.constant(1.0) + 1.0)


def test_from_the_beginning_to_the_end() -> None:
    before = patched()
    run = MeasuredRun.here("cell")
    run.begin()
    assert patched() != before
    reads(5)
    looked = run.look()
    assert (looked.state, looked.exit_code) == ("running", None)
    assert [row.count for row in looked.tables.syncs] == [5]
    record = run.end(exit_code=3)
    assert patched() == before
    assert (record.program, record.state, record.exit_code) == ("cell", "finished", 3)
    assert sum(record.accounts.values()) == pytest.approx(record.wall_s, rel=0.01)
    assert not run.path.exists()
    run.keep(record)
    assert record_files.read(run.path) == record


def test_a_run_that_is_abandoned_leaves_nothing_behind() -> None:
    before = patched()
    run = MeasuredRun.here("cell")
    run.begin()
    run.abandon()
    assert patched() == before
    assert list(Path().iterdir()) == []


def test_a_program_hands_its_books_over_and_the_other_process_finishes_them() -> None:
    run = MeasuredRun.here("train.py")
    record_files.prepare()
    run.begin()
    try:
        run.save()
        assert record_files.read(run.path).state == "running"
        run.hand_over()
    finally:
        run.abandon()
    left = record_files.read(run.path)
    assert (left.state, left.exit_code, left.what_if) == ("ended", None, None)
    assert (finish_record(left, 1).state, finish_record(left, 1).exit_code) == ("finished", 1)


def test_a_record_with_nothing_to_replay_is_finished_without_prices() -> None:
    assert finish_record(sample_record(what_if=None), 0).what_if is None
