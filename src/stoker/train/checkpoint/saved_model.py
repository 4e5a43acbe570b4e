"""`model.keras` beside a run's checkpoints: the whole model, for `stoker export` and for Keras.

A checkpoint has everything a run needs to go on, but not the model's architecture, which the program builds.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from stoker.doctor.attach import announced
from stoker.logs import LOGGER
from stoker.tf_internals.types import Model

FILE = "model.keras"
# The errors that Keras raises for a model that cannot be saved, such as one without get_config.
_CANNOT_SAVE = (NotImplementedError, TypeError, ValueError, AttributeError, RuntimeError, OSError)


@announced.region(announced.SAVE)
def save_model(model: Model, directory: str | os.PathLike[str]) -> Path | None:
    """Write the model as it is now. Return None if Keras cannot save it, which does not fail the training."""
    target = Path(directory).expanduser().absolute() / FILE
    unfinished = target.with_name(f".{FILE}.{os.getpid()}.keras")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.save(unfinished)
        os.replace(unfinished, target)
    except _CANNOT_SAVE as error:
        unfinished.unlink(missing_ok=True)
        LOGGER.debug("%s was not written: %s", target, error)
        return None
    return target
