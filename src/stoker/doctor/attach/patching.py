"""Replacing functions of TensorFlow and Keras while the program runs, and putting them back."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from stoker.doctor.attach.sites import OWN_ROOT

F = TypeVar("F")
_MISSING = object()

# TensorFlow and Keras print tracebacks and "defined at" lists without the frames of files below `tensorflow/python`.
# Our wrappers stand between those frames and must not show up either.
_FRAMEWORK_PATH = os.path.join(OWN_ROOT, "tensorflow", "python", "")


def mark_as_framework(function: F) -> F:
    """Make a wrapper's frames count as the framework's own."""
    if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(OWN_ROOT):
        file = _FRAMEWORK_PATH + os.path.basename(function.__code__.co_filename)
        function.__code__ = function.__code__.replace(co_filename=file)
    return function


class Replacement:
    """A function put in the place of another. It can be taken out and put back any number of times."""

    def __init__(self, owner: object, name: str, make: Callable[[Any], object]) -> None:
        self._owner, self._name, self._make = owner, name, make
        self._below: object = _MISSING
        self._wrapper: object = None
        self._is_in = False

    def put_in(self) -> None:
        """Replace the attribute with the wrapper, which is made again if the attribute's value has changed since."""
        if self._is_in:
            return
        own = vars(self._owner).get(self._name, _MISSING)
        if self._wrapper is None or own is not self._below:
            self._below = own
            self._wrapper = mark_as_framework(self._make(getattr(self._owner, self._name)))
        setattr(self._owner, self._name, self._wrapper)
        self._is_in = True

    def take_out(self) -> None:
        """Restore the attribute. If someone has patched over our wrapper, it stays below theirs."""
        if not self._is_in or vars(self._owner).get(self._name) is not self._wrapper:
            return
        if self._below is _MISSING:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._below)
        self._is_in = False


class Patches:
    """A set of patches that are taken out together. Subclasses put them in, in `attach`."""

    def __init__(self) -> None:
        self.active = True
        self._undo: list[Callable[[], None]] = []
        # What `pause` takes out for a while: pairs of functions, one to put in and one to take out.
        self._pausable: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def attach(self) -> None:
        """Put the patches in. TensorFlow is already imported."""
        raise NotImplementedError

    def replace(
        self, owner: object, name: str, make: Callable[[Any], object], pausable: bool = False
    ) -> None:
        """Set `owner.name` to `make(original)`. `detach` undoes it; if `pausable`, so does `pause`, for a while."""
        replacement = Replacement(owner, name, make)
        replacement.put_in()
        self._undo.append(replacement.take_out)
        if pausable:
            self.let_pause(replacement.put_in, replacement.take_out)

    def let_pause(self, put_in: Callable[[], None], take_out: Callable[[], None]) -> None:
        """Have `pause` call `take_out`, and `resume` call `put_in`."""
        self._pausable.append((put_in, take_out))

    def pause(self) -> None:
        """Take the pausable patches out, the last one first."""
        for _, take_out in reversed(self._pausable):
            take_out()

    def resume(self) -> None:
        """Put the pausable patches back, unless all have been taken out for good."""
        if self.active:
            for put_in, _ in self._pausable:
                put_in()

    def add(self, owner: object, name: str, function: object) -> None:
        """Set an attribute of `owner` that `detach` removes. Do nothing if `owner` already has it."""
        if not hasattr(owner, name):
            setattr(owner, name, mark_as_framework(function))
            self._undo.append(lambda: delattr(owner, name))

    def on_detach(self, undo: Callable[[], None]) -> None:
        """Call `undo` when the patches are taken out."""
        self._undo.append(undo)

    def detach(self) -> None:
        """Take the patches out, the last one first."""
        self.active = False
        while self._undo:
            self._undo.pop()()
