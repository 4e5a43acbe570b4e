"""Random Keras models, and random ways of training them: strategies for hypothesis.

A `Case` is plain data, so that a difference shrinks to a small one and prints as something to read. `build` and
`arrays` make the model and its rows from it. `soak_models.py` of the benchmarks and `test_random_models.py` share it.

Left out, each for a reason:

- float16 as a whole (`mixed_float16` is in): Keras' own fit gives infinities and NaN after a step or two, and then
  there is nothing to compare.
- shuffled rows: the order is Stoker's own, see "Known differences" in docs/fit.md.
- `steps_per_epoch` that `steps_per_execution` does not divide, and data of unknown length: known differences as well.
- class weights beside sample weights, or with several outputs: Keras refuses them.

Compared by rounding and not by bits, see `comparing.py`: what `steps_per_execution`, or batches that are all of one
length, make Keras itself round otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.train.random_names import ACTIVATIONS, CHANNELS, LOSSES, MERGES, METRICS, POLICIES

Options = tuple[tuple[str, Any], ...]
Spec = tuple[str, Options]
"""The name of something of Keras', and its arguments."""


@dataclass(frozen=True)
class Case:
    """A model, and how it is trained."""

    rank: int = 2
    words: bool = False
    layers: tuple[Spec, ...] = ()
    functional: bool = False
    second_input: bool = False
    second_output: bool = False
    target: str = "numbers"
    loss: str = "mean_squared_error"
    metrics: tuple[str, ...] = ()
    weighted_metrics: tuple[str, ...] = ()
    optimizer: Spec = ("SGD", ())
    policy: str = "float32"
    frozen: bool = False
    rows: int = 9
    batch_size: int = 4
    epochs: int = 1
    weights: str = "none"
    validation: str = "none"
    validation_freq: int = 1
    steps_per_execution: int = 1
    callbacks: tuple[Spec, ...] = ()
    feed: str = "arrays"
    asked: str = "nothing"
    """What of the trained model is called as well: "evaluate", "predict" or "nothing"."""
    seed: int = 0

    @property
    def rows_held_out(self) -> int:
        """How many rows validation has."""
        return self.rows - int(self.rows * 0.7) if self.validation == "split" else self.rows


def _options(**choices: Any) -> st.SearchStrategy[Options]:
    """Some of these arguments, each with one of its values; left out in the simplest case."""
    optional = {name: st.sampled_from(values) for name, values in choices.items()}
    return st.fixed_dictionaries({}, optional=optional).map(lambda chosen: tuple(sorted(chosen.items())))


def _layer(name: str, needed: dict[str, Any] | None = None, **choices: Any) -> st.SearchStrategy[Spec]:
    fixed = tuple((needed or {}).items())
    return _options(**choices).map(lambda chosen: (name, fixed + chosen))


_WEIGHTS: dict[str, Any] = {
    "activation": ACTIVATIONS,
    "use_bias": [False],
    "kernel_regularizer": ["l1", "l2"],
    "kernel_constraint": ["max_norm", "non_neg", "unit_norm"],
    "kernel_initializer": ["he_normal", "orthogonal", "random_uniform"],
}
_CONV: dict[str, Any] = {**_WEIGHTS, "strides": [2], "padding": ["same"]}
_CELL: dict[str, Any] = {
    "activation": ["relu", "silu"],
    "unroll": [True],
    "dropout": [0.3],
    "recurrent_dropout": [0.2],
}

# Whatever the number of dimensions is.
_ANY_RANK = [
    _layer("Dense", {"units": CHANNELS}, **_WEIGHTS),
    _layer("Activation", {"activation": "relu"}),
    st.sampled_from(ACTIVATIONS).map(lambda name: ("Activation", (("activation", name),))),
    _layer("BatchNormalization", momentum=[0.5], scale=[False], center=[False], axis=[1]),
    _layer("LayerNormalization", center=[False], epsilon=[1e-6]),
    _layer("RMSNormalization"),
    _layer("UnitNormalization"),
    _layer("GroupNormalization", {"groups": 1}),
    _layer("Dropout", {"rate": 0.3}),
    _layer("GaussianNoise", {"stddev": 0.1}),
    _layer("GaussianDropout", {"rate": 0.2}),
    _layer("AlphaDropout", {"rate": 0.2}),
    _layer("ActivityRegularization", {"l2": 0.01}),
    _layer("PReLU"),
    _layer("LeakyReLU"),
    _layer("ELU"),
    _layer("Rescaling", {"scale": 0.5}, offset=[-1.0]),
    _layer("Identity"),
    _layer("SpectralNormalization"),
]
# By what they take; the number is the one they give.
_OF_RANK: dict[int, list[tuple[st.SearchStrategy[Spec], int]]] = {
    2: [(_layer("RepeatVector", {"n": 3}), 3)],
    3: [
        (_layer("Conv1D", {"filters": CHANNELS, "kernel_size": 2}, **_CONV), 3),
        (_layer("Conv1D", {"filters": CHANNELS, "kernel_size": 2, "padding": "causal"}, **_WEIGHTS), 3),
        (_layer("SeparableConv1D", {"filters": CHANNELS, "kernel_size": 2}, activation=ACTIVATIONS), 3),
        (_layer("DepthwiseConv1D", {"kernel_size": 2}, activation=ACTIVATIONS), 3),
        (_layer("Conv1DTranspose", {"filters": CHANNELS, "kernel_size": 2}, **_WEIGHTS), 3),
        (_layer("LSTM", {"units": CHANNELS}, **_CELL, go_backwards=[True]), 2),
        (_layer("LSTM", {"units": CHANNELS, "return_sequences": True}, **_CELL), 3),
        (_layer("GRU", {"units": CHANNELS}, **_CELL, reset_after=[False]), 2),
        (_layer("SimpleRNN", {"units": CHANNELS}, **_CELL), 2),
        (_layer("Bidirectional"), 2),
        (_layer("TimeDistributed"), 3),
        (_layer("MultiHeadAttention"), 3),
        (_layer("Attention"), 3),
        (_layer("GlobalAveragePooling1D"), 2),
        (_layer("GlobalMaxPooling1D"), 2),
        (_layer("MaxPooling1D", {"padding": "same"}), 3),
        (_layer("AveragePooling1D", {"pool_size": 2, "padding": "same"}), 3),
        (_layer("UpSampling1D"), 3),
        (_layer("ZeroPadding1D"), 3),
        (_layer("SpatialDropout1D", {"rate": 0.3}), 3),
        (_layer("Masking"), 3),
        (_layer("Permute", {"dims": (2, 1)}), 3),
    ],
    4: [
        (_layer("Conv2D", {"filters": CHANNELS, "kernel_size": 2}, **_CONV, dilation_rate=[2]), 4),
        (_layer("Conv2D", {"filters": CHANNELS, "kernel_size": 1}, **_CONV), 4),
        (_layer("SeparableConv2D", {"filters": CHANNELS, "kernel_size": 2}, activation=ACTIVATIONS), 4),
        (_layer("DepthwiseConv2D", {"kernel_size": 2}, activation=ACTIVATIONS, padding=["same"]), 4),
        (_layer("Conv2DTranspose", {"filters": CHANNELS, "kernel_size": 2}, **_CONV), 4),
        (_layer("MaxPooling2D", {"padding": "same"}), 4),
        (_layer("AveragePooling2D", {"padding": "same"}), 4),
        (_layer("GlobalAveragePooling2D"), 2),
        (_layer("GlobalMaxPooling2D"), 2),
        (_layer("UpSampling2D", interpolation=["bilinear"]), 4),
        (_layer("ZeroPadding2D"), 4),
        (_layer("SpatialDropout2D", {"rate": 0.3}), 4),
        (_layer("RandomFlip"), 4),
        (_layer("Resizing", {"height": 5, "width": 4}), 4),
        (_layer("ConvLSTM1D", {"filters": 2, "kernel_size": 2}), 3),
    ],
    5: [
        (_layer("Conv3D", {"filters": CHANNELS, "kernel_size": 2}, **_WEIGHTS), 5),
        (_layer("Conv3DTranspose", {"filters": CHANNELS, "kernel_size": 2}), 5),
        (_layer("MaxPooling3D", {"padding": "same"}), 5),
        (_layer("AveragePooling3D", {"padding": "same"}), 5),
        (_layer("GlobalAveragePooling3D"), 2),
    ],
}
_RATES: dict[str, Any] = {
    "clipnorm": [0.1],
    "clipvalue": [0.01],
    "global_clipnorm": [0.5],
    "weight_decay": [0.01],
}
_EVERY: dict[str, Any] = {
    **_RATES,
    "use_ema": [True],
    "gradient_accumulation_steps": [2],
    "learning_rate": [0.05, "decay"],
}
_OPTIMIZERS = st.one_of(
    _layer("SGD", **_EVERY, momentum=[0.9], nesterov=[True]),
    _layer("Adam", **_EVERY, amsgrad=[True], beta_1=[0.5]),
    _layer("RMSprop", **_EVERY, momentum=[0.5], centered=[True]),
    _layer("AdamW", **_EVERY),
    *[
        _layer(name, **_EVERY)
        for name in ("Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion", "Adafactor", "Lamb", "Muon")
    ],
)
_CALLBACKS = [
    _layer("EarlyStopping", {"monitor": "loss", "patience": 0}, restore_best_weights=[True]),
    _layer("TerminateOnNaN"),
    _layer("EveryBatch"),
]
# Keras refuses them beside a schedule.
_SETTING_RATES = [
    _layer("ReduceLROnPlateau", {"monitor": "loss", "patience": 0, "factor": 0.5}),
    _layer("LearningRateScheduler"),
]


@st.composite
def cases(draw: Any, most_layers: int = 4) -> Case:
    """All of it, with so many layers at most between input and output."""
    rank = draw(st.sampled_from([2, 3, 4, 5]))
    words = rank == 3 and draw(st.booleans())
    target = draw(st.sampled_from(sorted(LOSSES)))
    second_output = draw(st.integers(0, 5)) == 5
    functional = second_output or draw(st.booleans())
    layers, now = [], rank
    for _ in range(draw(st.integers(0, most_layers))):
        spec, now = draw(_next_layer(now, functional))
        layers.append(spec)
    plain = not second_output
    weights = ["none", "none", "sample", *(["class"] if plain and target in ("two", "classes") else [])]
    optimizer = draw(_OPTIMIZERS.filter(_is_sensible))
    callbacks = [] if ("learning_rate", "decay") in optimizer[1] else _SETTING_RATES
    metrics = st.lists(st.sampled_from(METRICS[target]), max_size=2, unique=True).map(tuple)
    return Case(
        rank=rank,
        words=words,
        layers=tuple(layers),
        functional=functional,
        second_input=functional and draw(st.integers(0, 5)) == 5,
        second_output=second_output,
        target=target,
        loss=draw(st.sampled_from(LOSSES[target])),
        metrics=draw(metrics),
        weighted_metrics=draw(metrics) if draw(st.booleans()) else (),
        optimizer=optimizer,
        policy=draw(st.sampled_from(POLICIES)),
        frozen=draw(st.integers(0, 5)) == 5,
        rows=draw(st.integers(4, 17)),
        batch_size=draw(st.sampled_from([4, 3, 8, 32])),
        epochs=draw(st.sampled_from([1, 2, 3])),
        weights=draw(st.sampled_from(weights)),
        validation=draw(st.sampled_from(["none", "data", "weighted", "split"])),
        validation_freq=draw(st.sampled_from([1, 1, 2])),
        steps_per_execution=draw(st.sampled_from([1, 1, 1, 2, 3])),
        callbacks=draw(
            st.lists(st.one_of(*_CALLBACKS, *callbacks), max_size=2, unique_by=lambda spec: spec[0]).map(
                tuple
            )
        ),
        feed=draw(st.sampled_from(["arrays", "arrays", "dataset"])),
        asked=draw(st.sampled_from(["nothing", "evaluate", "predict"])),
        seed=draw(st.integers(0, 3)),
    )


@st.composite
def _next_layer(draw: Any, rank: int, functional: bool) -> tuple[Spec, int]:
    if functional and draw(st.integers(0, 4)) == 4:
        return (draw(st.sampled_from(MERGES)), ()), rank
    choices = _OF_RANK[rank]
    if draw(st.booleans()):
        strategy, after = draw(st.sampled_from(choices))
        spec = draw(strategy)
        if spec[0] in ("MultiHeadAttention", "Attention") and not functional:
            return ("Identity", ()), rank
        return spec, after
    return draw(st.one_of(_ANY_RANK)), rank


def _is_sensible(optimizer: Spec) -> bool:
    """Not what Keras refuses: more than one way of clipping."""
    return sum(name.startswith(("clip", "global_clip")) for name, _ in optimizer[1]) <= 1
