"""Which models Stoker can run: those of Keras 3 on TensorFlow. Anything else is refused in one line."""

from __future__ import annotations

import keras

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import KERAS_2, Trainer
from stoker.tf_internals.versions import KERAS


class ModelTypeError(ArgumentError, TypeError):
    """What was given as a model is none that can be run here."""


def check_model(model: object, verb: str) -> None:
    """Refuse what is no model of Keras 3 on TensorFlow, or a layer that Keras' `Trainer` is mixed into.

    Args:
        model: what was given as one.
        verb: what it was given to, such as "fit".
    """
    caller = f"stoker.{verb}"
    if is_keras_2(model):
        raise ModelTypeError(
            f"{caller} takes a Keras 3 model, and this {type(model).__name__} is one of Keras 2 (tf_keras): "
            "make it with `import keras`, and run without TF_USE_LEGACY_KERAS"
        )
    if not isinstance(model, Trainer):
        raise ModelTypeError(f"{caller} takes a keras.Model first, got {type(model).__name__}{_usage(verb)}")
    check_backend(verb)


def check_backend(verb: str) -> None:
    """Refuse to run where Keras does not run on TensorFlow, or is one that was never tried."""
    if not KERAS.includes(keras.__version__):
        raise ModelTypeError(f"stoker.{verb}: {KERAS.refusal(keras.__version__)}")
    if keras.config.backend() != "tensorflow":
        raise ModelTypeError(
            f"stoker.{verb} runs on TensorFlow, but Keras runs on {keras.config.backend()}: "
            "set KERAS_BACKEND=tensorflow before Keras is imported"
        )


def is_keras_2(thing: object) -> bool:
    """Whether it is of a class of Keras 2, or of one derived from such."""
    return any(kind.__module__.startswith(KERAS_2) for kind in type(thing).__mro__)


def _usage(verb: str) -> str:
    if verb not in ("fit", "evaluate", "predict"):
        return ""
    return f": stoker.{verb}(model, x) stands for model.{verb}(x)"
