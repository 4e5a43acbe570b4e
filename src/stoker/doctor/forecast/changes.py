"""Changes that may save memory. Each is made in the program's own process before the program begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker.doctor.attach.patching import Replacement
from stoker.doctor.forecast.trace import StepTrace
from stoker.tf_internals import keras_optimizers
from stoker.tf_internals.types import Optimizer, Variable

_WITHOUT_SLOTS = ("SGD",)


@dataclass(frozen=True)
class Change:
    """A change that can be measured: its name, where it applies, and how it is made.

    With `parts`, a step computes the batch in that many parts, one after another.
    """

    name: str
    title: str
    make: Callable[[], None]
    applies_to: Callable[[StepTrace], bool]
    # Whether the trace of a run shows that the change was made.
    is_made: Callable[[StepTrace], bool] = lambda trace: True
    parts: tuple[int, ...] = ()


def use_mixed_precision() -> None:
    """Compute in 16 bits, as if the program began with `set_global_policy`."""
    import keras

    keras.mixed_precision.set_global_policy("mixed_float16")


def use_sgd() -> None:
    """Replace the program's optimizer with SGD without momentum."""
    import keras

    _replace_optimizers(lambda optimizer: _turn_into(optimizer, keras.optimizers.SGD))


def use_adafactor() -> None:
    """Replace the program's optimizer with Adafactor."""
    import keras

    _replace_optimizers(lambda optimizer: _turn_into(optimizer, keras.optimizers.Adafactor))


def accumulate_gradients() -> None:
    """Make the program's optimizer accumulate the gradients of two steps. More steps need no more memory."""

    def accumulate(optimizer: Optimizer) -> None:
        optimizer.gradient_accumulation_steps = 2

    _replace_optimizers(accumulate)


def _replace_optimizers(change: Callable[[Optimizer], None]) -> None:
    """Change each optimizer just before it creates its variables."""
    import keras

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def build(optimizer: Optimizer, variables: list[Variable]) -> None:
            kind = type(optimizer)
            if not optimizer.built:
                change(optimizer)
            # If the optimizer's class has changed, the new class creates the variables.
            (original if type(optimizer) is kind else type(optimizer).build)(optimizer, variables)

        return build

    for kind in _optimizer_classes(keras.optimizers):
        if "build" in vars(kind):
            Replacement(kind, "build", wrap).put_in()


def _optimizer_classes(module: Any) -> list[type]:
    """Return the classes of optimizers with variables of their own, so not LossScaleOptimizer, which wraps another."""
    base = keras_optimizers.optimizer_type()
    named = (thing for name, thing in vars(module).items() if name != "LossScaleOptimizer")
    return [
        thing
        for thing in named
        if isinstance(thing, type) and issubclass(thing, base) and thing.__name__ != "Optimizer"
    ]


def _turn_into(optimizer: Optimizer, kind: type) -> None:
    """Turn an optimizer into one of another class, with the settings of that class and its own learning rate."""
    if isinstance(optimizer, kind):
        return
    for name, value in vars(kind()).items():
        if name not in vars(optimizer):
            setattr(optimizer, name, value)
    optimizer.__class__ = kind


CHANGES = (
    Change(
        "mixed-precision",
        "mixed precision",
        use_mixed_precision,
        lambda trace: trace.policy == "float32",
        lambda trace: trace.policy == "mixed_float16",
    ),
    Change(
        "sgd",
        "SGD without momentum",
        use_sgd,
        lambda trace: trace.optimizer not in ("", *_WITHOUT_SLOTS),
        lambda trace: trace.optimizer == "SGD",
    ),
    Change(
        "adafactor",
        "Adafactor",
        use_adafactor,
        lambda trace: trace.optimizer not in ("", "Adafactor", *_WITHOUT_SLOTS),
        lambda trace: trace.optimizer == "Adafactor",
    ),
    Change(
        "accumulation",
        "accumulation",
        accumulate_gradients,
        lambda trace: trace.optimizer != "",
        parts=(2, 4, 8),
    ),
)
BY_NAME = {change.name: change for change in CHANGES}
