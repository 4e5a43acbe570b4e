"""One update by a Keras optimizer, with a separate rate for each variable and with some variables frozen.

`Optimizer.apply` takes one rate for all variables and counts every call as a step. This module therefore calls the
optimizer's `update_step`, which is documented for one variable and one rate, and does the weight decay and the
constraint that `apply` would do around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals import keras_optimizers
from stoker.tf_internals.types import Optimizer, Tensor, Variable
from stoker.train.update.clipping import Clip
from stoker.train.update.patterns import Rate, Span, group_by_span, is_trained, mask, rate_at
from stoker.train.update.replicas import Replicas


class Optimizing:
    """Writes gradients into variables."""

    def __init__(
        self,
        optimizer: Optimizer,
        variables: Sequence[Variable],
        *,
        clip: Clip | None,
        rates: Sequence[Rate | None],
        spans: Sequence[Span | None],
        slowdown: Variable,
        replicas: Replicas,
        keeps_averages: bool = False,
    ) -> None:
        """keeps_averages: whether to keep the averages that the optimizer's own `use_ema` asks for, as Keras does."""
        check_optimizer(optimizer, replicas, keeps_averages)
        self.optimizer = optimizer
        self.variables = list(variables)
        self.clip = clip
        self._rates = rates
        self._groups = group_by_span(spans)
        self.frozen = [span is True for span in spans]
        """For each variable whether it is frozen for good: no gradient is computed for it."""
        self._slowdown = slowdown
        self._replicas = replicas
        if not optimizer.built:
            # Build it on all variables that are ever trained: a variable that is frozen now may thaw.
            with replicas.scope():
                optimizer.build([v for v, out in zip(self.variables, self.frozen, strict=True) if not out])

    @property
    def state(self) -> list[Variable]:
        """All variables that `write` may change, as TensorFlow's variables."""
        return [variable.value for variable in (*self.variables, *self.optimizer.variables)]

    def write(self, gradients: Sequence[Tensor]) -> None:
        """Make one update. `gradients` has None for variables that take no part."""
        step = tf.convert_to_tensor(self.optimizer.iterations)
        base = self._base_rate()
        factor = self._replicas.rate_factor
        slowdown = self._slowdown if factor == 1 else self._slowdown * factor
        rates = [rate_at(rate, step, base) * slowdown for rate in self._rates]
        limited = self._clip_factors(gradients, step)
        # The work that an optimizer does once a step, whatever the variables: Nadam's product of momentums.
        if not self._replicas.distributed:
            keras_optimizers.update_all(self.optimizer, [], [], rates[0])
        averages = self._averages()
        for span, indices in self._groups.items():
            on = is_trained(span, step)

            def write_group(indices: list[int] = indices) -> None:
                for index in indices:
                    if index in limited:
                        self._write_one(
                            self.variables[index], *limited[index], rates[index], averages.get(index)
                        )
                    elif index in averages:
                        self._replicas.each(self.variables[index].value, self._average, averages[index].value)

            if on is True:
                write_group()
            else:
                call_if(on, write_group)
        self.optimizer.iterations.assign_add(1)

    def _base_rate(self) -> Tensor:
        return tf.cast(tf.convert_to_tensor(self.optimizer.learning_rate), tf.float32)

    def _clip_factors(self, gradients: Sequence[Tensor], step: Tensor) -> dict[int, tuple[Tensor, Tensor]]:
        """Return the gradient of each variable that takes part, and the factor that clips it."""
        present = {index: gradient for index, gradient in enumerate(gradients) if gradient is not None}
        if self.clip is None:
            return {index: (gradient, None) for index, gradient in present.items()}
        active: dict[int, Tensor] = {}
        for span, indices in self._groups.items():
            active.update(dict.fromkeys(indices, is_trained(span, step)))
        firsts = [self._replicas.first(gradient) for gradient in present.values()]
        factors = self.clip.factors(mask(firsts, [active.get(index, False) for index in present]))
        return dict(zip(present, zip(present.values(), factors, strict=True), strict=True))

    def _averages(self) -> dict[int, Variable]:
        """Return the optimizer's own average of each variable, if it keeps averages."""
        if not self.optimizer.use_ema:
            return {}
        return {
            index: keras_optimizers.average_of(self.optimizer, variable)
            for index, variable in enumerate(self.variables)
            if not self.frozen[index]
        }

    def _average(self, weight: Variable, average: Variable) -> None:
        """Update the moving average of a weight, and replace the weight by it when due: Keras' `use_ema`."""
        step = tf.convert_to_tensor(self.optimizer.iterations)
        momentum = tf.cast(step != 0, weight.dtype) * self.optimizer.ema_momentum
        average.assign(momentum * average + (1 - momentum) * weight)
        every = self.optimizer.ema_overwrite_frequency
        if every:
            weight.assign(tf.where((step + 1) % every == 0, average, weight))

    def _write_one(
        self, variable: Variable, gradient: Tensor, factor: Tensor, rate: Tensor, average: Variable
    ) -> None:
        decay = _weight_decay(self.optimizer, variable)

        def change(weight: Variable, slope: Tensor, *averages: Variable) -> None:
            if self.clip is not None:
                slope = self.clip.limit(slope, factor)
            if decay is not None:
                weight.assign_sub(weight * tf.cast(decay, weight.dtype) * tf.cast(rate, weight.dtype))
            self.optimizer.update_step(slope, weight, rate)
            for one in averages:
                self._average(weight, one)
            if variable.constraint is not None:
                weight.assign(variable.constraint(weight))

        averages = [] if average is None else [average.value]
        self._replicas.each(variable.value, change, gradient, *averages)


def check_optimizer(optimizer: Optimizer, replicas: Replicas, keeps_averages: bool = False) -> None:
    """Refuse the options of a Keras optimizer that the trainer handles itself, and say what to write instead."""
    name = type(optimizer).__name__
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ArgumentError(
            f"optimizer is a {name}: give a keras.optimizers.Optimizer, e.g. keras.optimizers.Adam()."
        )
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ArgumentError(
            "LossScaleOptimizer checks replica 0 only: give its inner optimizer, the trainer scales itself."
        )
    if optimizer.use_ema and not keeps_averages:
        raise ArgumentError(f"{name}(use_ema=True): give the trainer ema={optimizer.ema_momentum} instead.")
    if optimizer.gradient_accumulation_steps:
        steps = optimizer.gradient_accumulation_steps
        raise ArgumentError(
            f"{name}(gradient_accumulation_steps={steps}): give the trainer accumulate={steps} instead."
        )
    if optimizer.loss_scale_factor is not None:
        raise ArgumentError(
            f"{name}(loss_scale_factor=...): the trainer scales float16 losses itself; leave it out."
        )
    if replicas.distributed and isinstance(optimizer, keras.optimizers.Nadam):
        raise ArgumentError("Nadam is not supported on several replicas: use Adam.")


def _weight_decay(optimizer: Optimizer, variable: Variable) -> float | None:
    """Return the weight decay of a variable. Muon has a second one, for the variables that it leaves to Adam."""
    if not keras_optimizers.decays(optimizer, variable):
        return None
    if isinstance(optimizer, keras.optimizers.Muon) and keras_optimizers.is_left_to_adam(optimizer, variable):
        decay: float | None = optimizer.adam_weight_decay
    else:
        decay = optimizer.weight_decay
    return decay


def call_if(condition: Tensor, write: Callable[[], object]) -> None:
    """In the graph, call `write` if the condition holds."""

    def write_and_return() -> bool:
        write()
        return True

    tf.cond(condition, write_and_return, lambda: False)
