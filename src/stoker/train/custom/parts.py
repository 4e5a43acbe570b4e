"""The parts that a trainer trains: models, each with an optimizer and everything that makes its updates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import LogValue, Model, Optimizer, Strategy, Tensor, Variable
from stoker.train.execution.model_kinds import ModelTypeError, is_keras_2
from stoker.train.update.averaging import EMA, Averages
from stoker.train.update.balancing import Balance, Balancing, Weight
from stoker.train.update.clipping import Clip, clip_of
from stoker.train.update.means import RunningMeans
from stoker.train.update.optimizing import Optimizing
from stoker.train.update.patterns import Rate, Span, choose_rates, choose_spans, path_of
from stoker.train.update.pipeline import Accumulation, Update, limits
from stoker.train.update.replicas import Replicas
from stoker.train.update.scaling import LossScale, LossScaler, computes_in_float16
from stoker.train.update.watching import Halt, LossWatch, Spike, Trouble

# The type that an option must have, and an example for the error.
_KINDS: tuple[tuple[str, type, str], ...] = (
    ("clip", Clip, "stoker.Clip(global_norm=1.0)"),
    ("rates", Mapping, 'a dict by name pattern such as {"encoder": stoker.Times(0.1)}'),
    ("ema", EMA, "a number such as 0.999, or stoker.EMA(0.999)"),
    ("loss_scale", LossScale, "stoker.LossScale()"),
    ("on_spike", Spike, "stoker.Spike()"),
)


@dataclass(frozen=True)
class UpdateOptions:
    """The checked options of a trainer, which say how updates are made."""

    losses: Mapping[str, Weight] | Balance | None = None
    clip: Clip | None = None
    rates: Mapping[str, Rate] | None = None
    freeze: str | Iterable[str] | Mapping[str, Span] | None = None
    accumulate: int = 1
    ema: EMA | None = None
    loss_scale: LossScale | None = None
    stop_on_nan: bool = True
    on_spike: Spike | None = None
    keeps_averages: bool = False

    def __post_init__(self) -> None:
        for option, kind, example in _KINDS:
            value = getattr(self, option)
            if value is not None and not isinstance(value, kind):
                raise ArgumentError(f"{option}={value!r}: give {example}.")
        if isinstance(self.accumulate, bool) or not isinstance(self.accumulate, int) or self.accumulate < 1:
            raise ArgumentError(
                f"accumulate={self.accumulate!r}: give the number of batches of an update, at least 1."
            )

    @property
    def checks_losses(self) -> bool:
        """Whether every step's loss is checked."""
        return self.stop_on_nan or self.on_spike is not None


@dataclass
class TrainedPart:
    """A model (or a group of variables) with its own optimizer."""

    name: str
    update: Update
    watch: LossWatch
    prefix: str

    @property
    def variables(self) -> list[Variable]:
        """The trained variables, in the order of the gradients."""
        return self.update.optimizing.variables

    @property
    def state(self) -> dict[str, Variable]:
        """The state of the part apart from the model and the optimizer."""
        found: dict[str, Tensor] = dict(self.watch.variables)
        for piece in (self.update.accumulation, self.update.averages, self.update.scaler):
            if piece is not None:
                found.update(piece.variables)
        return {f"{self.prefix}{name}": variable for name, variable in found.items()}


def build_parts(
    models: Mapping[str, Model],
    optimizers: Mapping[str, Optimizer],
    extra: Mapping[str, Sequence[Variable]],
    options: UpdateOptions,
    slowdown: Tensor,
    replicas: Replicas,
) -> dict[str, TrainedPart]:
    """Return a part for each model.

    Patterns see all paths; if there are several parts, a path begins with the part's name.
    """
    prefixes = {name: f"{name}/" if len(models) > 1 else "" for name in models}
    variables = {name: [*model.trainable_variables, *extra.get(name, ())] for name, model in models.items()}
    paths = [f"{prefixes[name]}{path_of(one)}" for name, listed in variables.items() for one in listed]
    rates = iter(choose_rates(options.rates, paths))
    spans = iter(choose_spans(options.freeze, paths))
    parts = {}
    for name, model in models.items():
        own_rates = [next(rates) for _ in variables[name]]
        own_spans = [next(spans) for _ in variables[name]]
        optimizing = Optimizing(
            optimizers[name],
            variables[name],
            clip=limits(options.clip, clip_of(optimizers[name])),
            rates=own_rates,
            spans=own_spans,
            slowdown=slowdown,
            replicas=replicas,
            keeps_averages=options.keeps_averages,
        )
        update = _update(model, optimizing, options, replicas)
        parts[name] = TrainedPart(name, update, LossWatch(options.on_spike), prefixes[name])
    return parts


def _update(model: Model, optimizing: Optimizing, options: UpdateOptions, replicas: Replicas) -> Update:
    scale = options.loss_scale or (LossScale() if computes_in_float16(model) else None)
    weights = list(model.trainable_variables)
    return Update(
        optimizing,
        accumulation=Accumulation(options.accumulate, optimizing.variables)
        if options.accumulate > 1
        else None,
        averages=Averages(options.ema, weights, replicas) if options.ema is not None else None,
        scaler=LossScaler(scale) if scale is not None else None,
        replicas=replicas,
        guarded=options.checks_losses,
    )


def name_each(given: object, kind: type, option: str) -> dict[str, Any]:
    """Turn one thing, or a dict of things, into a dict."""
    found = dict(given) if isinstance(given, Mapping) else {"model": given}
    for name, one in found.items():
        if not isinstance(one, kind):
            which = f"{option} {name!r}" if isinstance(given, Mapping) else option
            example = "keras.optimizers.Adam()" if option == "optimizer" else "a keras.Model"
            if is_keras_2(one):
                raise ModelTypeError(
                    f"stoker.Trainer: the {which}, {type(one).__name__}, is one of Keras 2 (tf_keras): "
                    f"give {example} of Keras 3, made with `import keras`."
                )
            raise ArgumentError(f"{which} is {one!r}, a {type(one).__name__}: give {example}.")
    return found


def common_strategy(models: Mapping[str, Model]) -> Strategy:
    """Return the strategy under which the models were made."""
    found = {id(model.distribute_strategy): model.distribute_strategy for model in models.values()}
    if len(found) > 1:
        raise ArgumentError(
            "the models were made under different strategies: make them all in one strategy.scope()."
        )
    (strategy,) = found.values()
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        raise ArgumentError(
            "stoker.Trainer does not train under a ParameterServerStrategy: use stoker.fit, or stoker.strategy()."
        )
    return strategy


class UpdateState:
    """The parts with their updates, the weights of the losses, the means of the epoch, and any trouble."""

    def __init__(
        self,
        models: Mapping[str, Model],
        optimizers: Mapping[str, Optimizer],
        options: UpdateOptions,
        replicas: Replicas,
        *,
        loss_names: Sequence[str],
        log_names: Iterable[str],
    ) -> None:
        """loss_names: the losses of a step that leaves the update to the trainer; empty for one with full control."""
        self.halt = Halt()
        self._watched = options.checks_losses
        # A factor on all rates, which is lowered after spikes.
        self.slowdown = tf.Variable(1.0, trainable=False)
        self.steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        with replicas.scope():
            self.balancing = Balancing(options.losses, loss_names)
        trained = {"model": self.balancing.trainable_variables} if loss_names else {}
        self.parts = build_parts(models, optimizers, trained, options, self.slowdown, replicas)
        self._flush = tf.function(self._flush_all, autograph=False)
        self.means = RunningMeans(dict.fromkeys([*log_names, *self.balancing.weight_names()]))

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables for checkpoints, by names that are the same in every process."""
        found = {
            "slowdown": self.slowdown,
            "steps": self.steps,
            **self.balancing.variables,
            **self.halt.variables,
        }
        found.update(self.means.variables)
        for part in self.parts.values():
            found.update(part.state)
        return found

    def flush(self) -> None:
        """On the host, write what accumulation still holds, in one compiled call."""
        if any(part.update.accumulation is not None for part in self.parts.values()):
            self._flush()

    def _flush_all(self) -> None:
        for part in self.parts.values():
            part.update.flush()

    def account(
        self, logs: Mapping[str, LogValue], made: Sequence[Mapping[str, Tensor]], rows: Tensor
    ) -> dict[str, Tensor]:
        """In the graph, after a step, note bad losses, count the step, and return the means so far."""
        step = tf.identity(self.steps)
        going: Tensor = tf.constant(True)
        counted: Tensor = True
        if self._watched:
            going = tf.logical_not(self.halt.on)
            for update in made:
                for name, (loss, trouble) in update.items():
                    self.parts[name].watch.learn(loss, going & (trouble == Trouble.NONE))
                    self.halt.note(trouble, step, loss)
            counted = tf.logical_not(self.halt.on)
        if any(part.update.scaler is not None for part in self.parts.values()):
            # A step that overflowed made no update, so its loss says nothing.
            counted &= tf.reduce_all([tf.math.is_finite(value) for value in logs.values()])
        self.steps.assign(step + tf.cast(going, tf.int64))
        return self.means.add(logs, rows, counted, self.halt.on if self._watched else None)


def results_of(metrics: Sequence[keras.metrics.Metric]) -> dict[str, Tensor]:
    return {metric.name: metric.result() for metric in metrics}
