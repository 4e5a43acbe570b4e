"""Keras optimizers: their slots, and the steps between the gradients and the variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from stoker.tf_internals import Place
from stoker.tf_internals.types import Optimizer, Tensor, Variable

# Takes gradients, variables and the learning rate.
Update = Callable[..., None]


def application() -> Place:
    """Return the method that all ways to apply gradients go through: `(optimizer, gradients, variables=None)`."""
    from keras.src.optimizers import base_optimizer

    return base_optimizer.BaseOptimizer, "apply"


def trained_variables(optimizer: Optimizer) -> list[Variable]:
    """Return the variables on which an optimizer was built, as Keras' or TensorFlow's own."""
    return list(optimizer._trainable_variables)


def slots_of_adam(optimizer: Optimizer, variable: Variable) -> tuple[Variable, Variable]:
    """Return the two averages that Adam keeps of a variable, as Keras variables."""
    number = optimizer._get_variable_index(variable)
    return optimizer._momentums[number], optimizer._velocities[number]


def slots_of(optimizer: Optimizer, variable: Variable) -> list[Variable]:
    """Return the slots that any optimizer keeps for a variable: their names begin with the variable's path."""
    begins = str(variable.path).replace("/", "_") + "_"
    return [one for one in optimizer.variables if one.name.startswith(begins) and one.shape == variable.shape]


def bytes_of(variable: Variable) -> int:
    """Return the size of a Keras variable's values."""
    import numpy as np
    import tensorflow as tf

    return int(np.prod(variable.shape, dtype=np.int64)) * int(tf.as_dtype(variable.dtype).size)


def average_of(optimizer: Optimizer, variable: Variable) -> Variable:
    """Return the average that an optimizer with `use_ema` keeps of a variable."""
    return optimizer._model_variables_moving_average[optimizer._get_variable_index(variable)]


def clip(optimizer: Optimizer, gradients: list[Tensor]) -> list[Tensor]:
    """Clip gradients by the optimizer's `clipnorm`, `clipvalue` or `global_clipnorm`."""
    return list(optimizer._clip_gradients(gradients))


def update_all(
    optimizer: Optimizer, gradients: Sequence[Tensor], variables: Sequence[Variable], rate: Tensor
) -> None:
    """Update variables, and do what an optimizer does once a step. Without variables, do only the latter."""
    optimizer._backend_update_step(gradients, variables, rate)


@contextmanager
def update_replaced(optimizer: Optimizer, make: Callable[[Update], Update]) -> Iterator[None]:
    """Have the optimizer update its variables by `make(its own update)` within the block."""
    optimizer._backend_update_step = make(optimizer._backend_update_step)
    try:
        yield
    finally:
        del optimizer._backend_update_step


def decays(optimizer: Optimizer, variable: Variable) -> bool:
    """Return whether an optimizer's weight decay applies to a variable."""
    return bool(optimizer._use_weight_decay(variable))


def is_left_to_adam(muon: Optimizer, variable: Variable) -> bool:
    """Return whether `keras.optimizers.Muon` updates a variable as AdamW does."""
    return bool(muon._should_use_adamw(variable))


def variable_tracking() -> Place:
    """Return the method that an optimizer calls with each variable it makes, the first one when it is made."""
    from keras.src.optimizers import base_optimizer

    return base_optimizer.BaseOptimizer, "_track_variable"


def optimizer_type() -> type:
    """Return the class of all optimizers; `keras.Optimizer` is a subclass."""
    from keras.src.optimizers import base_optimizer

    kind: type = base_optimizer.BaseOptimizer
    return kind
