"""The model that a recipe exports: the network, a rival, or a mix, whichever is best on the validation rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import keras
import numpy as np

import stoker
from stoker.data.array_types import Array
from stoker.errors import ArgumentError, StokerError
from stoker.recipes.choosing import ENSEMBLE, choose_weights, measure_losses
from stoker.recipes.rows import Inputs, Rows
from stoker.tf_internals.types import Dataset, Model, Nest

if TYPE_CHECKING:
    from stoker.recipes.rival_training import Rival

NETWORK = "network"
# The rows answered at once; fewer texts, as a model may count every term of its vocabulary in each.
_BATCH, _TEXTS = 1024, 128


@dataclass(frozen=True)
class Winner:
    """The model to export.

    Attributes:
        shares: the weights of its members, by name.
        model: the model; it takes the network's inputs if it is the network alone, otherwise raw rows.
        features: what the export needs to know about the inputs.
        predict: returns the answers for raw rows: probabilities of the classes, or numbers.
        losses: what the choice rests on: the losses on the validation rows, by name; empty if there was no choice.
    """

    shares: dict[str, float]
    model: Model
    features: Dataset
    predict: Callable[[Inputs], Array]
    losses: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name that the report uses."""
        return next(iter(self.shares)) if len(self.shares) == 1 else ENSEMBLE


@dataclass(frozen=True)
class WinnerChoice:
    """The models to choose from.

    Attributes:
        network: the best network; None if there was no time to train any.
        peers: the other models; or only their predictions for the test rows, by name.
        train: the dataset that the network learned from.
        classes: the number of classes; 0 for numbers.
        balanced: whether all classes count the same.
        ids: turns raw inputs into what the network takes; None if it takes them unchanged.
        raw: the dataset of raw inputs, if those of `train` are not raw.
        learn_again: trains the network on other rows; None if it cannot be trained again.
    """

    network: Model | None
    peers: Mapping[str, Array] | Sequence[Rival]
    train: Dataset
    classes: int
    balanced: bool
    ids: Callable[[Inputs], Inputs] | None = None
    raw: Dataset | None = None
    learn_again: Callable[[Rows], Model] | None = None

    @property
    def rivals(self) -> Sequence[Rival]:
        """The other models that can be exported."""
        return [] if isinstance(self.peers, Mapping) else [one for one in self.peers if one.build is not None]

    def answers(self, test: Rows) -> dict[str, Array]:
        """Return the answers of all models for the test rows, by name."""
        found = {} if self.network is None else {NETWORK: self._ask_network(test.inputs)}
        if isinstance(self.peers, Mapping):
            return {**found, **self.peers}
        return {**found, **{one.name: one.predict(test) for one in self.peers}}

    def choose(self, validation: Rows | None, only: str | None) -> Winner:
        """Choose the model that is best on the validation rows, or the one that was asked for.

        Raises:
            ArgumentError: the model that was asked for cannot be exported.
            StokerError: no model can be exported.
        """
        names = [*([] if self.network is None else [NETWORK]), *(one.name for one in self.rivals)]
        if not names or (validation is None and self.network is None):
            raise StokerError(
                "training stopped before the end of its first epoch: there is nothing to keep yet"
            )
        if only is not None:
            if only not in names:
                raise ArgumentError(
                    f"only={only!r}: for this data, there is no such model that can be exported"
                )
            return self._make({only: 1.0})
        if validation is None or names == [NETWORK]:
            return self._make({NETWORK: 1.0})
        answers = {} if self.network is None else {NETWORK: self._ask_network(validation.inputs)}
        answers |= {one.name: one.validation for one in self.rivals if one.validation is not None}
        labels, classes, balanced = validation.labels, self.classes, self.balanced
        shares = choose_weights(labels, answers, classes=classes, balanced=balanced)
        losses = measure_losses(labels, answers, shares, classes=classes, balanced=balanced)
        return replace(self._make(shares), losses=losses)

    def train_winner(self, winner: Winner, rows: Rows) -> Winner:
        """Return the same choice, with members that have learned from these rows."""
        peers = [
            one.learn_again(rows) if one.name in winner.shares and one.learn_again is not None else one
            for one in self.rivals
        ]
        network = self.network
        if NETWORK in winner.shares and self.learn_again is not None:
            network = self.learn_again(rows)
        return replace(self, network=network, peers=peers)._make(winner.shares)

    def _make(self, shares: dict[str, float]) -> Winner:
        if list(shares) == [NETWORK]:
            assert self.network is not None
            return Winner(shares, self.network, self.train, self._ask_network)
        from stoker.recipes.rival_answers import mix

        models = [self._build(name) for name in shares]
        model = models[0]
        if len(models) > 1:
            model = mix(models, [*shares.values()], self._inputs(models[0]), self.classes)
        return Winner(
            shares,
            model,
            self.train if self.raw is None else self.raw,
            lambda inputs: predict(model, inputs, self.classes),
        )

    def _build(self, name: str) -> Model:
        """Return a model that takes raw rows."""
        if name != NETWORK:
            return next(one.build for one in self.rivals if one.name == name and one.build is not None)()
        if self.ids is None:
            return self.network
        from stoker.recipes.tfidf import take_texts

        return take_texts(self.network, self.train)

    def _inputs(self, model: Model) -> Nest:
        """Return Keras inputs for the raw rows that a model takes."""
        from stoker.recipes.rivals import table_inputs

        if isinstance(model.input, Mapping):
            return table_inputs(self.train.features)
        return keras.Input(model.input.shape[1:], dtype=model.input.dtype, name=model.input.name)

    def _ask_network(self, inputs: Inputs) -> Array:
        return predict(self.network, inputs if self.ids is None else self.ids(inputs), self.classes)


def predict(model: Model, inputs: Inputs, classes: int) -> Array:
    """Return probabilities of the classes, or a number, for each row."""
    arrays = [*inputs.values()] if isinstance(inputs, Mapping) else [inputs]
    if any(one.dtype in (np.float64, object) for one in arrays):
        # Keras rounds arrays to float32 and refuses texts as bytes, but takes a dataset unchanged, as a server does.
        import tensorflow as tf

        rows = dict(inputs) if isinstance(inputs, Mapping) else inputs
        inputs = tf.data.Dataset.from_tensor_slices(rows).batch(_BATCH if len(arrays) > 1 else _TEXTS)
        answers: Array = stoker.predict(model, inputs, verbose=0)
    else:
        answers = stoker.predict(model, inputs, batch_size=_BATCH, verbose=0)
    return answers if classes else answers.reshape(-1)
