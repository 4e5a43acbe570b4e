"""What callbacks remember: a run that is cut and goes on does what one that was not cut does."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.train.checkpoint.callback_state import callbacks_state, restore_callbacks
from stoker.train.checkpoint.packing import pack, unpack

LOSSES = [5.0, 4.0, 4.5, 4.2, 3.9, 4.4, 4.3, 4.1, 4.0]


def model() -> Any:
    built = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    built.compile("sgd", "mse")
    return built


class Run:
    """Epochs with given losses, as a training loop would drive its callbacks."""

    def __init__(self, *callbacks: Any, resumed_from: Any = None) -> None:
        self.model = model()
        self.callbacks = callbacks
        self.all = keras.callbacks.CallbackList(list(callbacks), model=self.model)
        self.all.on_train_begin()
        if resumed_from is not None:
            restore_callbacks(callbacks, resumed_from)

    def epochs(self, first: int, last: int) -> Run:
        for epoch in range(first, last):
            self.all.on_epoch_begin(epoch)
            self.model.layers[-1].bias.assign([float(epoch)])
            self.all.on_epoch_end(epoch, {"loss": LOSSES[epoch], "val_loss": LOSSES[epoch] + 1})
        return self

    def state(self) -> Any:
        """As it comes back from a file."""
        arrays: dict[str, Any] = {}
        return unpack(pack(callbacks_state(self.callbacks), arrays), arrays)


def test_early_stopping_stops_where_it_would_have() -> None:
    def make() -> Any:
        return keras.callbacks.EarlyStopping("loss", patience=3, restore_best_weights=True)

    whole = Run(make()).epochs(0, 8)
    assert whole.callbacks[0].stopped_epoch == 7
    for cut in range(1, 8):
        resumed = Run(make(), resumed_from=Run(make()).epochs(0, cut).state()).epochs(cut, 8)
        stopping = resumed.callbacks[0]
        assert (stopping.stopped_epoch, stopping.best, stopping.best_epoch, stopping.wait) == (7, 3.9, 4, 3)
        assert resumed.model.stop_training
        resumed.all.on_train_end()
        assert resumed.model.layers[-1].bias.numpy().tolist() == [4.0]


def test_the_best_weights_are_a_copy() -> None:
    run = Run(keras.callbacks.EarlyStopping("loss", patience=3, restore_best_weights=True)).epochs(0, 2)
    state = run.state()
    run.model.layers[-1].bias.assign([99.0])
    assert state["EarlyStopping"]["attributes"]["best_weights"][-1].tolist() == [1.0]


def test_reduced_rates_and_cooldown_go_on() -> None:
    def make() -> Any:
        return keras.callbacks.ReduceLROnPlateau("loss", patience=2, cooldown=2)

    whole = vars(Run(make()).epochs(0, 9).callbacks[0])
    for cut in range(1, 9):
        resumed = vars(
            Run(make(), resumed_from=Run(make()).epochs(0, cut).state()).epochs(cut, 9).callbacks[0]
        )
        for name in ("wait", "best", "cooldown_counter"):
            assert resumed[name] == whole[name], (cut, name)


def test_a_worse_epoch_does_not_overwrite_the_best_file(tmp_path: Path) -> None:
    def make() -> Any:
        return keras.callbacks.ModelCheckpoint(
            tmp_path / "best.weights.h5", monitor="loss", save_best_only=True, save_weights_only=True
        )

    state = Run(make()).epochs(0, 2).state()
    before = (tmp_path / "best.weights.h5").read_bytes()
    resumed = Run(make(), resumed_from=state).epochs(2, 4)
    assert (tmp_path / "best.weights.h5").read_bytes() == before
    assert resumed.callbacks[0].best == 4.0


@pytest.mark.parametrize("append", [False, True])
def test_a_log_file_has_each_epoch_once(tmp_path: Path, append: bool) -> None:
    """Epochs 3 and 4 were logged after the checkpoint and run again."""
    path = tmp_path / "log.csv"
    if append:
        path.write_text("epoch,loss,val_loss\n100,1.0,2.0\n")
    earlier = ["100"] if append else []

    def make() -> Any:
        return keras.callbacks.CSVLogger(path, append=append)

    run = Run(make()).epochs(0, 3)
    state = run.state()
    run.epochs(3, 5)
    resumed = Run(make(), resumed_from=state).epochs(3, 6)
    resumed.all.on_train_end()
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [*earlier, "0", "1", "2", "3", "4", "5"]
    assert [float(row["loss"]) for row in rows][len(earlier) :] == LOSSES[:6]


def test_a_log_file_cut_before_its_first_row(tmp_path: Path) -> None:
    def make() -> Any:
        return keras.callbacks.CSVLogger(tmp_path / "log.csv")

    resumed = Run(make(), resumed_from=Run(make()).state()).epochs(0, 2)
    resumed.all.on_train_end()
    assert (tmp_path / "log.csv").read_text().splitlines()[0] == "epoch,loss,val_loss"
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


def test_history_goes_on() -> None:
    first, second = keras.callbacks.History(), keras.callbacks.History()
    Run(second, resumed_from=Run(first).epochs(0, 3).state()).epochs(3, 5)
    assert second.epoch == [0, 1, 2, 3, 4]
    assert second.history["loss"] == LOSSES[:5]


class Counting(keras.callbacks.Callback):
    """The user's own, which says what it remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs += 1

    def get_state(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "table": np.full(3, self.epochs)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.epochs = state["epochs"]
        assert state["table"].tolist() == [self.epochs] * 3


class Patient(keras.callbacks.EarlyStopping):
    """A subclass of Keras' with state of its own."""

    stops = 0

    def get_state(self) -> int:
        return self.stops

    def set_state(self, state: int) -> None:
        self.stops = state


def test_callbacks_of_the_user_say_what_they_remember() -> None:
    first = (Counting(), Counting(), Patient("loss", patience=3))
    run = Run(*first).epochs(0, 3)
    first[1].epochs = 30
    first[2].stops = 5
    second = (Counting(), Counting(), Patient("loss", patience=3))
    Run(*second, resumed_from=run.state())
    assert [second[0].epochs, second[1].epochs, second[2].stops] == [3, 30, 5]
    assert (second[2].wait, second[2].best) == (1, 4.0)


class Forgetful(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []


class Stateless(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        pass


def test_what_is_forgotten_is_said() -> None:
    state = Run(Forgetful(), Stateless(), keras.callbacks.TerminateOnNaN()).state()
    with pytest.warns(stoker.CheckpointWarning) as caught:
        Run(Forgetful(), Stateless(), keras.callbacks.TerminateOnNaN(), resumed_from=state)
    assert [str(warning.message) for warning in caught] == [
        "the callback Forgetful has no get_state() and set_state(): what it remembers starts over in this run"
    ]


def test_a_new_callback_is_said() -> None:
    with pytest.warns(stoker.CheckpointWarning, match="Counting was not there when the checkpoint was saved"):
        Run(Counting(), resumed_from=Run(Stateless()).state())


@pytest.fixture(autouse=True)
def no_other_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    yield
    assert not [w for w in recwarn if issubclass(w.category, stoker.CheckpointWarning)]
