"""Compiled loops outlive a run; the data they ran over does not, and two runs never see each other's."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.streamed import Streamed
from tests.train import models

X, Y = models.data()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[BatchFeed]]:
    """Every feed that is made."""
    feeds: list[weakref.ref[BatchFeed]] = []
    make = sources.DataSource.feed

    def noted(source: sources.DataSource, kind: str, seed: int, **options: Any) -> BatchFeed:
        feed = make(source, kind, seed, **options)
        feeds.append(weakref.ref(feed))
        return feed

    monkeypatch.setattr(sources.DataSource, "feed", noted)
    return feeds


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["resident", "streamed"])
def test_after_a_run_its_data_can_go(made: list[weakref.ref[BatchFeed]], plan: str) -> None:
    model = models.dense()
    stoker.fit(model, X, Y, validation_data=(X[:20], Y[:20]), verbose=0, plan=plan)
    gc.collect()
    assert [feed() for feed in made] == [None, None]


def test_an_evaluation_inside_a_run_leaves_its_validation_alone(made: list[weakref.ref[BatchFeed]]) -> None:
    """The data of both has one shape, so that both use one loop."""
    x: Any = np.ones((8, 1), "float32")
    found: list[float] = []

    def step(model: Any, batch: Any, training: bool = False) -> Any:
        return keras.ops.mean(model(batch[0]) - batch[1])

    trainer = stoker.Trainer(
        keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")]),
        keras.optimizers.SGD(0.0),
        step,
    )

    class OnOtherData(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            found.append(trainer.evaluate(x, x * -7, batch_size=8)["loss"])

    history = trainer.fit(
        x, x * 0, 8, epochs=3, verbose=0, callbacks=[OnOtherData()], validation_data=(x, x * -2)
    ).history
    assert history["val_loss"] == [2.0, 2.0, 2.0]
    assert found == [7.0, 7.0, 7.0]
    assert history["loss"] == [0.0, 0.0, 0.0]
    gc.collect()
    assert not any(feed() for feed in made)


def test_every_verb_closes_its_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Streamed] = []
    closed: list[Streamed] = []
    init, close = Streamed.__init__, Streamed.close

    def noted_init(feed: Streamed, *args: Any, **options: Any) -> None:
        made.append(feed)
        init(feed, *args, **options)

    def noted_close(feed: Streamed) -> None:
        closed.append(feed)
        close(feed)

    monkeypatch.setattr(Streamed, "__init__", noted_init)
    monkeypatch.setattr(Streamed, "close", noted_close)
    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    model = models.dense()
    stoker.fit(model, batches, verbose=0, validation_data=batches, shuffle=False)
    stoker.evaluate(model, batches, verbose=0)

    def step(model: Any, batch: Any, training: bool = False) -> Any:
        return keras.ops.mean(model(batch[0]))

    stoker.Trainer(model, model.optimizer, step).evaluate(batches)
    assert len(made) == 4
    assert closed == made
