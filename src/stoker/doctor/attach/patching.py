"""Replacing functions of TensorFlow and Keras while the program runs, and putting them back."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from stoker.doctor.attach.sites import OWN_ROOT

F = TypeVar("F")
_MISSING = object()

# TensorFlow and Keras leave frames of files below `tensorflow/python` out of the tracebacks and the "defined at" lists
# they print. Our wrappers stand between those frames and must not show up either.
_FRAMEWORK_PATH = os.path.join(OWN_ROOT, "tensorflow", "python", "")


def as_framework(function: F) -> F:
    """Make a wrapper's frames count as the framework's own."""
    if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(OWN_ROOT):
        file = _FRAMEWORK_PATH + os.path.basename(function.__code__.co_filename)
        function.__code__ = function.__code__.replace(co_filename=file)
    return function


class Patches:
    """A set of patches that are taken out together. A subclass puts them in, in `attach`."""

    def __init__(self) -> None:
        self.active = True
        self._undo: list[Callable[[], None]] = []

    def attach(self) -> None:
        """Put the patches in. TensorFlow is imported by now."""
        raise NotImplementedError

    def replace(self, owner: object, name: str, make: Callable[[Any], object]) -> None:
        """Set `owner.name` to `make(original)`, to be undone by `detach`."""
        own = vars(owner).get(name, _MISSING)
        replacement = as_framework(make(getattr(owner, name)))
        setattr(owner, name, replacement)

        def undo() -> None:
            # Someone may have patched over us since; then ours stays below theirs, inactive.
            if vars(owner).get(name) is replacement:
                if own is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)

        self._undo.append(undo)

    def add(self, owner: object, name: str, function: object) -> None:
        """Set an attribute that `owner` does not have, to be removed by `detach`; does nothing if it has one."""
        if not hasattr(owner, name):
            setattr(owner, name, as_framework(function))
            self._undo.append(lambda: delattr(owner, name))

    def on_detach(self, undo: Callable[[], None]) -> None:
        """Run `undo` when the patches are taken out."""
        self._undo.append(undo)

    def detach(self) -> None:
        """Take the patches out, last first."""
        self.active = False
        while self._undo:
            self._undo.pop()()
