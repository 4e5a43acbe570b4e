"""`stoker.fit` with a checkpoint, in one process: broken off by an error and called again, and what else may happen."""

from __future__ import annotations

import itertools
import os
import signal
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker import clock
from stoker.train.checkpoint import files
from stoker.train.checkpoint.resume import EarlySaves
from tests.support import wait_until

X = np.random.default_rng(0).normal(size=(160, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True)
STEPS = 10


class Broken(Exception):
    """What ends a run before its time."""


class BreakOff(keras.callbacks.Callback):
    """Raises at the end of an epoch: the checkpoints of that epoch are there, its end is not."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.at = epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.at:
            raise Broken

    def get_state(self) -> None:
        return None

    def set_state(self, state: None) -> None:
        pass


def model(width: int = 4) -> Any:
    keras.utils.set_random_seed(3)
    layers = [keras.Input((4,)), keras.layers.Dense(width, "relu"), keras.layers.Dropout(0.2)]
    built = keras.Sequential([*layers, keras.layers.Dense(1)])
    built.compile("adam", "mse")
    return built


class Shared:
    """One model for most tests, put back to its beginning: what was traced for it is used again."""

    model: Any = None
    beginning: tuple[Any, ...] = ()

    @classmethod
    def fresh(cls) -> Any:
        if cls.model is None:
            cls.model = model()
            cls.model.optimizer.build(cls.model.trainable_variables)
            cls.beginning = tuple(np.array(variable.numpy()) for variable in cls.variables())
        for variable, value in zip(cls.variables(), cls.beginning, strict=True):
            variable.assign(value)
        return cls.model

    @classmethod
    def variables(cls) -> list[Any]:
        return [*cls.model.variables, *cls.model.optimizer.variables]


def fit(directory: Path | None, built: Any = None, **options: Any) -> tuple[Any, Any]:
    built = built or Shared.fresh()
    checkpoint = None if directory is None else stoker.Checkpoint(directory, every=1)
    chosen: dict[str, Any] = {"epochs": 3, "batch_size": 16, "verbose": 0, "plan": "none, 3", **options}
    return built, stoker.fit(built, X, Y, checkpoint=checkpoint, **chosen)


def break_off(directory: Path, epoch: int, **options: Any) -> None:
    with pytest.raises(Broken):
        fit(directory, callbacks=[BreakOff(epoch)], **options)


def bits(built: Any) -> list[bytes]:
    return [np.asarray(v).tobytes() for v in built.variables + built.optimizer.variables]


def newest_first(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.stoker"), reverse=True)


@pytest.fixture(scope="module")
def whole() -> tuple[list[bytes], dict[str, list[float]]]:
    """How it ends without checkpoints and without a break."""
    built, history = fit(None)
    return bits(built), history.history


def test_saving_changes_nothing(tmp_path: Path, whole: Any) -> None:
    built, history = fit(tmp_path)
    assert (bits(built), history.history) == whole


def test_a_run_in_parts_resumes_in_the_same_parts(tmp_path: Path) -> None:
    plan = {"jit": "none", "steps_per_call": 3, "parts": 3}
    built, history = fit(None, plan=plan)
    expected = (bits(built), history.history)
    break_off(tmp_path, 1, plan=plan)
    # The checkpoint says how many.
    built, history = fit(tmp_path)
    assert history.plan.parts == 3
    assert (bits(built), history.history) == expected


def test_a_run_may_go_on_in_parts(tmp_path: Path, whole: Any) -> None:
    break_off(tmp_path, 1)
    _, history = fit(tmp_path, plan={"jit": "none", "parts": 2})
    assert history.plan.parts == 2
    # Dropout draws for each part.
    assert history.history["loss"][0] == whole[1]["loss"][0]
    assert history.history["loss"][2] == pytest.approx(whole[1]["loss"][2], rel=0.2)


class Interrupt(keras.callbacks.Callback):
    """Ends the training after so many steps, by an exception or as Ctrl-C would; each of them ends a call."""

    def __init__(self, after: int, by_signal: bool) -> None:
        super().__init__()
        self.left, self.by_signal = after, by_signal

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left != 0:
            return
        if not self.by_signal:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGINT)

    def get_state(self) -> None:
        return None

    def set_state(self, state: None) -> None:
        pass


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Whoever started the tests in the background had SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("by_signal", [False, True], ids=["by a callback", "by Ctrl-C"])
@pytest.mark.parametrize("after", [7, 2 * STEPS, 3 * STEPS])
def test_interrupted_it_saves_where_it_is(by_signal: bool, after: int, tmp_path: Path) -> None:
    def run(interrupt: Interrupt, directory: Path) -> tuple[Any, Any]:
        checkpoint = stoker.Checkpoint(directory, every=10**6)
        built = Shared.fresh()
        chosen: dict[str, Any] = {"epochs": 3, "batch_size": 16, "verbose": 0, "plan": "none"}
        return built, stoker.fit(built, X, Y, checkpoint=checkpoint, callbacks=[interrupt], **chosen)

    left_alone, expected = run(Interrupt(0, by_signal), tmp_path / "whole")
    end = bits(left_alone)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(Interrupt(after, by_signal), tmp_path / "cut")
    said = f"saved at step {after} in {tmp_path / 'cut'}; run the same command again to continue"
    assert str(caught.value) == (said if by_signal else "")
    shown = "".join(traceback.format_exception(caught.value))
    assert "stoker/train" not in shown.replace(__file__, ""), "the program's lines alone"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (kept,) = newest_first(tmp_path / "cut")
    assert files.read(kept).index.details["progress"]["step"] == after
    built, history = run(Interrupt(0, by_signal), tmp_path / "cut")
    assert (bits(built), history.history) == (end, expected.history)


@pytest.mark.usefixtures("ctrl_c")
def test_without_a_checkpoint_ctrl_c_interrupts_at_once() -> None:
    seen = []

    class Second(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(batch)

    with pytest.raises(KeyboardInterrupt):
        fit(None, callbacks=[Interrupt(7, True), Second()])
    assert len(seen) == 6


def test_the_first_checkpoints_do_not_wait_for_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is killed in its first minute does not begin again at its first step."""
    passed = itertools.count()
    monkeypatch.setattr(clock, "real_ns", lambda: next(passed) * 10**9)
    steps = []

    class Killed(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            wait_until(lambda: bool(newest_first(tmp_path)))
            steps.append(files.read(newest_first(tmp_path)[0]).index.details["progress"]["step"])
            raise ZeroDivisionError

        def get_state(self) -> None:
            return None

        def set_state(self, state: None) -> None:
            pass

    with pytest.raises(ZeroDivisionError):
        stoker.fit(
            Shared.fresh(), X, Y, 16, 3, verbose=0, plan="none, 1", callbacks=[Killed()], checkpoint=tmp_path
        )
    assert 0 < steps[0] < STEPS


def test_early_saves_come_at_growing_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clock, "real_ns", lambda: int(now[0] * 1e9))
    early, saved = EarlySaves(60.0), []
    for now[0] in range(600):
        if early.due():
            early.mark(0.0)
            saved.append(now[0])
    assert saved == [5, 15, 35, 75]
    early = EarlySaves(60.0)
    now[0] += 5.0
    assert early.due()
    early.mark(held_up_s=0.5)
    now[0] += 24.0
    assert not early.due(), "the next save may hold training up as long again"
    now[0] += 1.0
    assert early.due()
    for every in (4.0, None):
        early = EarlySaves(every)
        now[0] += 1000.0
        assert not early.due(), "the interval asked for is shorter, or counts steps"


def test_broken_off_and_called_again(tmp_path: Path, whole: Any) -> None:
    """In the same process, as in a notebook: the directory is free again."""
    break_off(tmp_path, 1)
    built, history = fit(tmp_path, callbacks=[BreakOff(99)])
    assert (bits(built), history.history) == whole


def test_a_new_model_goes_on_too(tmp_path: Path, whole: Any) -> None:
    break_off(tmp_path, 2)
    built, history = fit(tmp_path, model(), callbacks=[BreakOff(99)])
    assert (bits(built), history.history) == whole


def test_other_cuts_into_calls_give_the_same_bits(tmp_path: Path, whole: Any) -> None:
    break_off(tmp_path, 1)
    built, history = fit(tmp_path, callbacks=[BreakOff(99)], plan="none, 7")
    assert (bits(built), history.history) == whole


def test_a_damaged_newest_is_passed_over(tmp_path: Path, whole: Any) -> None:
    break_off(tmp_path, 1)
    newest = newest_first(tmp_path)[0]
    newest.write_bytes(newest.read_bytes()[:100])
    with pytest.warns(stoker.CheckpointWarning, match=f"skipped the checkpoint {newest}: its end is missing"):
        built, history = fit(tmp_path, callbacks=[BreakOff(99)])
    assert (bits(built), history.history) == whole


def test_all_gone_begins_anew(tmp_path: Path, whole: Any) -> None:
    break_off(tmp_path, 1)
    for path in newest_first(tmp_path):
        path.unlink()
    built, history = fit(tmp_path, callbacks=[BreakOff(99)])
    assert (bits(built), history.history) == whole


def test_a_finished_run_returns_at_once(tmp_path: Path, whole: Any) -> None:
    fit(tmp_path)
    files = newest_first(tmp_path)
    built, history = fit(tmp_path)
    assert (bits(built), history.history) == whole
    assert newest_first(tmp_path) == files


def test_a_finished_run_can_go_on_for_more_epochs(tmp_path: Path, whole: Any) -> None:
    fit(tmp_path, epochs=2)
    built, history = fit(tmp_path, epochs=3)
    assert (bits(built), history.history) == whole


def test_another_model_is_refused(tmp_path: Path) -> None:
    fit(tmp_path, epochs=1)
    with pytest.raises(
        stoker.CheckpointError, match=r"belongs to another model: model/1-Dense/0.kernel is float32"
    ):
        fit(tmp_path, model(width=5))
    with pytest.raises(stoker.CheckpointError, match=r"batch_size=16.* there, .*batch_size=32.* here"):
        fit(tmp_path, batch_size=32)


def test_an_option_that_makes_no_sense_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    number: Any = 5
    with pytest.raises(ValueError, match="checkpoint directory 5: give the path of a directory"):
        stoker.fit(model(), X, Y, checkpoint=number, verbose=0)


def test_random_ops_that_cannot_be_resumed_are_named(tmp_path: Path) -> None:
    class Noisy(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            return inputs + tf.random.normal(tf.shape(inputs))

    built = keras.Sequential([keras.Input((4,)), Noisy(), keras.layers.Dense(1)])
    built.compile("sgd", "mse")
    with pytest.warns(
        stoker.CheckpointWarning, match="the step uses RandomStandardNormal, whose random state"
    ):
        fit(tmp_path, built, epochs=1)


def test_a_full_disk_ends_training_with_one_line_and_keeps_what_was_saved(
    small_disk: Path, whole: Any
) -> None:
    break_off(small_disk, 1)
    disk = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(bytes(disk.f_bavail * disk.f_frsize))
    with pytest.raises(stoker.CheckpointError, match=r"the disk is full; the ones before it are untouched$"):
        fit(small_disk, callbacks=[BreakOff(99)])
    (small_disk / "other").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built, history = fit(small_disk, callbacks=[BreakOff(99)])
    assert (bits(built), history.history) == whole


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_resume_reads_its_checkpoint_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Any, epoch: int
) -> None:
    """One read gives the plan, the fingerprint, the variables, the callbacks' state and the position."""
    break_off(tmp_path, epoch)
    newest = newest_first(tmp_path)[0]
    opened: list[Path] = []

    open_file = files._open

    def note(path: Path) -> Any:
        opened.append(path)
        return open_file(path)

    monkeypatch.setattr(files, "_open", note)
    built, history = fit(tmp_path, callbacks=[BreakOff(99)])
    assert opened == [newest]
    assert (bits(built), history.history) == whole
