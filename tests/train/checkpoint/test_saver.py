"""The saver with real variables and real files: what is saved comes back, what is damaged is passed over."""

from __future__ import annotations

import threading
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker import clock
from stoker.train.checkpoint import files
from stoker.train.checkpoint.options import CheckpointOptionError
from stoker.train.checkpoint.packing import pack
from stoker.train.checkpoint.resume import Resume
from stoker.train.checkpoint.saver import Saver
from tests.support import HANGS_S

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.int32, tf.int64, tf.uint32, tf.bool)


def variables(value: float = 0.0) -> dict[str, tf.Variable]:
    return {"w": tf.Variable(tf.fill([3, 2], value)), "step": tf.Variable(int(value), dtype=tf.int64)}


def saved(directory: Path, *steps: int, keep: int = 3) -> None:
    """Checkpoints of these steps, their variables filled with the step's number."""
    state = variables()
    with Saver(stoker.Checkpoint(directory, keep=keep), state, "same") as saver:
        for step in steps:
            state["w"].assign(tf.fill([3, 2], float(step)))
            state["step"].assign(step)
            saver.save(step, {"at": step}, {"blob": bytes([step])}, wait=True)


def restored(directory: Path) -> tuple[Any, dict[str, tf.Variable]]:
    state = variables(-1.0)
    with Saver(stoker.Checkpoint(directory), state, "same") as saver:
        return saver.restore(), state


def newest_first(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.stoker"), reverse=True)


def test_all_types_come_back_bit_for_bit(tmp_path: Path) -> None:
    values = {t.name: tf.cast(tf.constant([[0.0, 1.5], [3.25, 100.0]]), t) for t in DTYPES}
    first = {name: tf.Variable(value) for name, value in values.items()}
    first["scalar"] = tf.Variable(7.5)
    first["empty"] = tf.Variable(tf.zeros([0, 4]))
    with Saver(stoker.Checkpoint(tmp_path), first, "") as saver:
        saver.save(1, {})
    second = {name: tf.Variable(tf.zeros_like(value)) for name, value in first.items()}
    with Saver(stoker.Checkpoint(tmp_path), second, "") as saver:
        assert saver.restore() == {}
    for name, variable in first.items():
        assert second[name].numpy().tobytes() == variable.numpy().tobytes(), name


def test_progress_comes_back_as_it_was(tmp_path: Path) -> None:
    progress = {
        "epoch": 3,
        "loss": 0.1 + 0.2,
        "worst": float("inf"),
        "none": None,
        "flag": True,
        "pair": (1, "a", [2.5]),
        "bytes": b"\x00\xff",
        "weights": [np.arange(6, dtype=np.float16).reshape(2, 3), np.zeros((0, 2))],
        "scalar": np.float32(0.1),
        "deep": {"a": {"b": [{"c": ()}]}},
        "same place": {"a/b": b"1", "a": {"b": b"2"}},
    }
    with Saver(stoker.Checkpoint(tmp_path), variables(), "") as saver:
        saver.save(1, progress, {"iterator": b"abc", "empty": b""})
    with Saver(stoker.Checkpoint(tmp_path), variables(), "") as saver:
        back = saver.restore()
        assert saver.blobs == {"iterator": b"abc", "empty": b""}
    assert back is not None
    arrays, again = back.pop("weights"), progress.pop("weights")
    assert back == progress
    assert type(back["scalar"]) is np.float32
    for array, original in zip(arrays, again, strict=True):
        assert array.dtype == original.dtype
        assert np.array_equal(array, original)


def test_what_cannot_be_stored_is_said_with_its_place() -> None:
    with pytest.raises(TypeError, match="progress/callbacks/0: object cannot be stored; use numbers"):
        pack({"callbacks": [object()]}, {})
    with pytest.raises(TypeError, match="the key 3 cannot be stored; use text"):
        pack({3: 1}, {})
    with pytest.raises(TypeError, match="progress/names: ndarray cannot be stored"):
        pack({"names": np.array(["a"])}, {})


def test_nothing_saved_is_none(tmp_path: Path) -> None:
    progress, state = restored(tmp_path)
    assert progress is None
    assert state["step"].numpy() == -1


def test_the_newest_is_restored_and_the_oldest_pruned(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3, 4, keep=2)
    assert [path.name for path in newest_first(tmp_path)] == [
        "checkpoint-00000004-step-4.stoker",
        "checkpoint-00000003-step-3.stoker",
    ]
    progress, state = restored(tmp_path)
    assert progress == {"at": 4}
    assert state["w"].numpy().tolist() == [[4.0, 4.0]] * 3


def damage_flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_version(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] = 200
    path.write_bytes(data)


def damage_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_flip, "does not match its checksum"),
        (damage_cut, "its end is missing"),
        (damage_empty, r"it is cut short \(0 bytes\)"),
        (damage_version, "it is of format 200"),
        (damage_directory, r"it cannot be read \(Is a directory\)"),
    ],
)
def test_a_damaged_newest_falls_back_and_is_named(tmp_path: Path, damage: Any, reason: str) -> None:
    saved(tmp_path, 1, 2)
    newest = newest_first(tmp_path)[0]
    damage(newest)
    with pytest.warns(
        stoker.CheckpointWarning, match=f"skipped the checkpoint {newest}: .*{reason}"
    ) as caught:
        progress, state = restored(tmp_path)
    assert len(caught) == 1
    assert progress == {"at": 1}
    assert state["step"].numpy() == 1


def test_a_missing_newest_falls_back_in_silence(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    newest_first(tmp_path)[0].unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert restored(tmp_path)[0] == {"at": 1}


def test_all_damaged_is_said_and_touches_no_variable(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    for path in newest_first(tmp_path):
        damage_flip(path)
    with pytest.warns(stoker.CheckpointWarning) as caught:
        progress, state = restored(tmp_path)
    assert len(caught) == 3
    assert "no good checkpoint is left" in str(caught[2].message)
    assert progress is None
    assert state["step"].numpy() == -1


def test_damaged_ones_do_not_count_for_keep(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3)
    damage_cut(newest_first(tmp_path)[0])
    with Saver(stoker.Checkpoint(tmp_path, keep=2), variables(), "same") as saver:
        with pytest.warns(stoker.CheckpointWarning):
            assert saver.restore() == {"at": 2}
        saver.save(9, {"at": 9})
    assert [path.name.split("-")[-1] for path in newest_first(tmp_path)] == ["9.stoker", "2.stoker"]


def test_another_model_is_one_line_that_says_what_differs(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    way_out = "; give another directory, or delete this one to start over$"

    def complaint(state: dict[str, tf.Variable], fingerprint: str = "same") -> str:
        with (
            Saver(stoker.Checkpoint(tmp_path), state, fingerprint) as saver,
            pytest.raises(stoker.CheckpointError, match=way_out) as caught,
        ):
            saver.restore()
        assert all((variable.numpy() == -1).all() for variable in state.values())
        return str(caught.value)

    text = complaint({**variables(-1.0), "w": tf.Variable(-tf.ones([3, 5]))})
    assert "belongs to another model: w is float32[3, 2] there, float32[3, 5] here" in text
    text = complaint({**variables(-1.0), "step": tf.Variable(-1.0)})
    assert "step is int64[] there, float32[] here" in text
    text = complaint({"w": variables(-1.0)["w"]})
    assert "step (int64[]) is only in the checkpoint" in text
    text = complaint({**variables(-1.0), "more": tf.Variable(-1.0), "most": tf.Variable(-1.0)})
    assert "more (float32[]) is not in the checkpoint (and 1 more)" in text
    text = complaint(variables(-1.0), "batch_size=64")
    assert "belongs to a run with different arguments: same there, batch_size=64 here" in text


def test_progress_is_known_before_there_is_a_model(tmp_path: Path) -> None:
    checkpoint = stoker.Checkpoint(tmp_path / "a")
    with closing(Resume(checkpoint)) as resume:
        assert resume.progress is None
    saved(tmp_path / "a", 1, 2)
    damage_cut(newest_first(tmp_path / "a")[0])
    with pytest.warns(stoker.CheckpointWarning, match="skipped the checkpoint") as told:
        resume = Resume(checkpoint)
    progress: object = resume.progress
    assert progress == {"at": 1}
    assert len(told) == 1
    resume.close()


def test_going_back_behind_a_step(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20, 30)
    state = variables()
    with Saver(stoker.Checkpoint(tmp_path), state, "same") as saver:
        assert saver.restore() == {"at": 30}
        assert saver.restore(before=25) == {"at": 20}
        assert state["step"].numpy() == 20
        assert saver.restore(before=5) is None
        saver.save(20, {"at": 20, "again": True}, wait=True)
    assert restored(tmp_path)[0] == {"at": 20, "again": True}


def test_what_is_written_is_the_moment_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is held up while training goes on: the file still has the values of the call, and no save waits."""
    go_on = threading.Event()
    write = files.write

    def held_up(*arguments: Any) -> None:
        go_on.wait(HANGS_S)
        write(*arguments)

    monkeypatch.setattr(files, "write", held_up)
    state = variables(1.0)
    with Saver(stoker.Checkpoint(tmp_path, every=1), state, "same") as saver:
        assert saver.due(1)
        assert saver.save(1, {"at": 1})
        state["w"].assign_add(tf.ones([3, 2]))
        state["step"].assign(2)
        assert not saver.due(2)
        assert not saver.save(2, {"at": 2})
        go_on.set()
    progress, state = restored(tmp_path)
    assert progress == {"at": 1}
    assert state["w"].numpy().tolist() == [[1.0, 1.0]] * 3
    assert state["step"].numpy() == 1


def test_a_failed_write_is_raised_at_the_next_chance(tmp_path: Path) -> None:
    """The directory goes away under the saver."""

    def failing(directory: Path) -> Saver:
        saver = Saver(stoker.Checkpoint(directory, every=1), variables(), "")
        (directory / "lock").unlink()
        directory.rmdir()
        saver.save(1, {})
        while saver._writer.busy:
            pass
        return saver

    with pytest.raises(stoker.CheckpointError, match="No such file or directory"):
        failing(tmp_path / "a").save(2, {})
    with pytest.raises(stoker.CheckpointError, match="No such file or directory"):
        failing(tmp_path / "b").due(2)
    with pytest.raises(stoker.CheckpointError, match="No such file or directory"):
        failing(tmp_path / "c").close()
    with pytest.raises(KeyError), failing(tmp_path / "d"):
        raise KeyError("the body's own error is not hidden")


def test_due_by_steps_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(clock, "real_ns", lambda: now[0])
    with Saver(stoker.Checkpoint(tmp_path / "a", every=10), variables(), "") as saver:
        assert [step for step in range(12) if saver.due(step)] == [10, 11]
        saver.save(11, {}, wait=True)
        assert [step for step in range(12, 25) if saver.due(step)] == [21, 22, 23, 24]
    with Saver(stoker.Checkpoint(tmp_path / "a", every=10), variables(), "") as saver:
        saver.restore()
        assert not saver.due(20)
        assert saver.due(21)
    with Saver(stoker.Checkpoint(tmp_path / "b", every="1.5min"), variables(), "") as saver:
        now[0] = int(89e9)
        assert not saver.due(10**6)
        now[0] = int(90e9)
        assert saver.due(1)
        saver.save(1, {}, wait=True)
        assert not saver.due(2)


def test_text_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(stoker.CheckpointError, match="name holds string: only numbers and booleans"):
        Saver(stoker.Checkpoint(tmp_path), {"name": tf.Variable("a")}, "")


@pytest.mark.parametrize(
    ("every", "seconds"),
    [("30s", 30), ("5min", 300), ("5m", 300), ("2h", 7200), ("1.5h", 5400), ("1 d", 86400), ("250ms", 0.25)],
)
def test_durations(every: str, seconds: float) -> None:
    checkpoint = stoker.Checkpoint("a", every=every)
    assert checkpoint.every_seconds == seconds
    assert checkpoint.every_steps is None


@pytest.mark.parametrize(
    "every", ["", "5", "min", "-5s", "0s", "5 minutes", "5M", " 5 ", 0, -3, 2.5, True, None]
)
def test_an_interval_that_makes_no_sense(every: Any) -> None:
    with pytest.raises(ValueError, match=r"every=.*: give a duration such as '30s'") as caught:
        stoker.Checkpoint("a", every=every)
    assert isinstance(caught.value, CheckpointOptionError)


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, "3"])
def test_a_number_to_keep_that_makes_no_sense(keep: Any) -> None:
    with pytest.raises(ValueError, match=r"keep=.*: give the number of checkpoints to keep, 1 or more"):
        stoker.Checkpoint("a", keep=keep)


@pytest.mark.parametrize("directory", ["", None, 3])
def test_a_directory_that_makes_no_sense(directory: Any) -> None:
    with pytest.raises(ValueError, match=r"checkpoint directory .*: give the path of a directory"):
        stoker.Checkpoint(directory)


def test_what_an_argument_means(tmp_path: Path) -> None:
    options = stoker.Checkpoint(tmp_path, every=5)
    assert stoker.Checkpoint.of(options) is options
    assert stoker.Checkpoint.of("here") == stoker.Checkpoint("here", every="5min", keep=3)
