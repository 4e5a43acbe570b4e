"""Makes errors of a training run show the program's own lines, as in Keras' `fit`, without forty internal frames.

`keras.config.disable_traceback_filtering()` shows everything, as in Keras.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TypeVar, cast

import keras
import tensorflow as tf

from stoker.doctor.attach.frames import drop_frames
from stoker.doctor.attach.sites import OWN_ROOT

F = TypeVar("F", bound=Callable[..., object])

_LEFT_OUT = (
    OWN_ROOT,
    *(
        os.path.join(os.path.dirname(os.path.abspath(library.__file__)), part, "")
        for library, part in ((keras, "src"), (tf, "python"))
    ),
)


def filter_errors(function: F) -> F:
    """Make errors that leave the function show only frames outside of TensorFlow, Keras and the trainer."""

    @functools.wraps(function)
    def run(*args: object, **kwds: object) -> object:
        try:
            return function(*args, **kwds)
        except (Exception, KeyboardInterrupt) as error:
            here = error.__traceback__
            if here is not None and keras.config.is_traceback_filtering_enabled():
                # Python 3.10 raises it again with the traceback with which it was caught, which begins here: cut that
                # one too.
                here.tb_next = drop_frames(here.tb_next, _LEFT_OUT)
                error.__traceback__ = here.tb_next
            raise

    return cast(F, run)
