"""Training from a reader goes on after a crash with the bits of a run that was left alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from tests.data.frames import mixed
from tests.data.old_files import runs


class _Crash(keras.callbacks.Callback):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.seen = at, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt


def _train(path: Path, directory: Path, callbacks: Any = None) -> Any:
    keras.utils.set_random_seed(0)
    train, held_out = stoker.data.csv(
        path,
        label="count",
        batch_size=50,
        shuffle=True,
        seed=6,
        validation_split=0.2,
        columns=["weight", "colour", "sold"],
    )
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(1)(train.features.encode(inputs)))
    model.compile("adam", "mse")
    checkpoint = stoker.Checkpoint(directory, every=3)
    stoker.fit(
        model,
        train,
        validation_data=held_out,
        epochs=3,
        verbose=0,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    return [weight.copy() for weight in model.get_weights()]


@pytest.mark.slow
@pytest.mark.parametrize("at", [5, 11, 20])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path, at: int) -> None:
    mixed(500).to_csv(tmp_path / "t.csv", index=False)
    expected = _train(tmp_path / "t.csv", tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        _train(tmp_path / "t.csv", tmp_path / "broken", [_Crash(at)])
    found = _train(tmp_path / "t.csv", tmp_path / "broken")
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


OLD = Path(__file__).parent / "old_files"
# What the old shuffle had left of the pass after eight batches.
_OLD_REST = [31, 12, 30, 3, 5, 55, 53, 51, 1, 54, 6, 46]


@pytest.mark.parametrize("taken", [runs.EARLY, runs.LATE])
def test_a_run_of_the_old_shuffle_is_refused(taken: int, tmp_path: Path) -> None:
    """Its orders are gone: to go on would train on some rows twice and on others not at all."""
    shutil.copytree(OLD / runs.name(True, taken), tmp_path / "run")
    with pytest.raises(stoker.CheckpointError, match="earlier version of Stoker, which shuffled") as error:
        runs.train(tmp_path / "run", True, taken)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("taken", [runs.EARLY, runs.LATE])
def test_an_old_run_without_a_shuffle_goes_on(taken: int, tmp_path: Path) -> None:
    shutil.copytree(OLD / runs.name(False, taken), tmp_path / "run")
    resumed = runs.train(tmp_path / "run", False, taken)
    whole = runs.train(tmp_path / "whole", False, taken)
    # The first steps were computed on another machine.
    np.testing.assert_allclose(resumed[0], whole[0], rtol=1e-3)


@pytest.mark.parametrize(("shuffle", "taken"), runs.PLACES)
def test_what_an_old_iterator_had_drawn_ahead_comes_in_its_order(shuffle: bool, taken: int) -> None:
    iterator = iter(runs.rows(shuffle))
    tf.train.Checkpoint(iterator=iterator).read(str(OLD / "iterators" / runs.name(shuffle, taken)))
    rest = [row for batch in iterator for row in batch.numpy()]
    assert len(rest) == runs.ROWS - taken * runs.BATCH
    last = _OLD_REST if shuffle else [*range(runs.LATE * runs.BATCH, runs.ROWS)]
    assert rest[-len(last) :] == last


def test_an_old_iterator_that_would_draw_more_is_refused() -> None:
    iterator = iter(runs.many_rows())
    with pytest.raises(tf.errors.NotFoundError, match="the dataset definition has not changed"):
        tf.train.Checkpoint(iterator=iterator).read(str(OLD / "iterators" / "many-7"))
