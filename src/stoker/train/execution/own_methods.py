"""A model's own `fit`, `evaluate` or `predict`: Stoker calls it, and replaces the Keras method that it calls in turn.

Such a method prepares its arguments and passes them to `super().fit(...)`: for instance, a task of keras_hub runs its
preprocessor. This way nothing that the method does is left out.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TypeVar, cast

from stoker.doctor.attach.patching import mark_as_framework
from stoker.doctor.attach.sites import OWN_ROOT
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import TensorFlowTrainer, is_made_by_keras
from stoker.tf_internals.types import Model

F = TypeVar("F", bound=Callable[..., object])


@dataclass
class Redirect:
    """The replacement of Keras' method, for one model during one call.

    Attributes:
        given: the caller's arguments, by name, before the model's own method changed them.
        calls: how many times the model's own method has called the replacement.
    """

    model: Model
    name: str
    target: Callable[..., object]
    given: Mapping[str, object] = field(default_factory=dict)
    calls: int = 0
    running: bool = False

    def call(self, *args: object, **kwds: object) -> object:
        self.calls += 1
        # Calls from within, such as a callback's, get Keras' method again.
        self.running = True
        try:
            return self.target(*args, **kwds)
        finally:
            self.running = False


_redirects: ContextVar[tuple[Redirect, ...]] = ContextVar("redirects", default=())


def is_own(model: Model, name: str) -> bool:
    """Return whether a model overrides Keras' method."""
    return getattr(type(model), name) is not getattr(TensorFlowTrainer, name) or name in vars(model)


def is_set_by_user(model: Model, name: str) -> bool:
    """Return whether a function that Keras would make, such as `train_function`, was set by hand.

    Keras then runs the model.
    """
    function = getattr(model, name, None)
    return function is not None and not is_made_by_keras(function)


def calls_own(function: F) -> F:
    """Make `fit`, `evaluate` or `predict` call the model's own method of that name, if it has one.

    The keyword-only arguments, which Keras' method does not have, are not passed on to the model's method.
    """
    name = function.__name__
    signature = inspect.signature(function).parameters
    parameters = list(signature)[1:]
    options = [one.name for one in signature.values() if one.kind is one.KEYWORD_ONLY]
    code = inspect.unwrap(function).__code__

    @functools.wraps(function)
    def verb(model: Model, *args: object, **kwds: object) -> object:
        if not isinstance(model, TensorFlowTrainer) or not is_own(model, name):
            return function(model, *args, **kwds)
        if _is_called_by_own(model, name, code):
            # The model's own method calls Stoker itself.
            outside = _find_active(model, name)
            return function(model, *args, **kwds) if outside is None else outside.call(*args, **kwds)
        added = {option: kwds.pop(option) for option in options if option in kwds}
        given = {**dict(zip(parameters, args, strict=False)), **kwds}

        def target(*inner: object, **named: object) -> object:
            _check_again(redirect, added)
            return function(model, *inner, **{**added, **named})

        redirect = Redirect(model, name, target, given)
        with _install_redirect(redirect):
            result = getattr(model, name)(*args, **kwds)
        if not redirect.calls:
            _warn_of_no_call(model, name, added)
        return result

    return cast(F, verb)


@contextmanager
def redirect_method(model: Model, name: str, target: Callable[..., object]) -> Iterator[None]:
    """Replace Keras' method of this name with `target`, in this thread, when the model's own method calls it."""
    with _install_redirect(Redirect(model, name, target)):
        yield


def original_arguments(model: Model, name: str) -> Mapping[str, object] | None:
    """Return the arguments of the model's own method, by name; None if that method is not the caller."""
    for redirect in reversed(_redirects.get()):
        if redirect.model is model and redirect.name == name and redirect.running:
            return redirect.given
    return None


def _find_active(model: Model, name: str) -> Redirect | None:
    for redirect in reversed(_redirects.get()):
        if redirect.model is model and redirect.name == name:
            return None if redirect.running else redirect
    return None


@contextmanager
def _install_redirect(redirect: Redirect) -> Iterator[None]:
    token = _redirects.set((*_redirects.get(), redirect))
    try:
        with _dispatchers.install(redirect.name):
            yield
    finally:
        _redirects.reset(token)


class _Dispatchers:
    """Replaces Keras' methods while any thread has a redirect."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[str, int] = {}
        self._replaced: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {}

    @contextmanager
    def install(self, name: str) -> Iterator[None]:
        with self._lock:
            self._users[name] = self._users.get(name, 0) + 1
            if self._users[name] == 1:
                original = getattr(TensorFlowTrainer, name)
                dispatcher = _dispatcher(name, original)
                self._replaced[name] = (original, dispatcher)
                setattr(TensorFlowTrainer, name, dispatcher)
        try:
            yield
        finally:
            with self._lock:
                self._users[name] -= 1
                if self._users[name] == 0:
                    original, dispatcher = self._replaced.pop(name)
                    # Others may have replaced it since. Then this one stays below theirs and does nothing.
                    if vars(TensorFlowTrainer).get(name) is dispatcher:
                        setattr(TensorFlowTrainer, name, original)


_dispatchers = _Dispatchers()


def _dispatcher(name: str, original: Callable[..., object]) -> Callable[..., object]:
    def dispatch(self: Model, *args: object, **kwds: object) -> object:
        redirect = _find_active(self, name)
        return original(self, *args, **kwds) if redirect is None else redirect.call(*args, **kwds)

    dispatcher: Callable[..., object] = functools.wraps(original)(mark_as_framework(dispatch))
    return dispatcher


def _is_called_by_own(model: Model, name: str, verb: CodeType) -> bool:
    """Return whether the model's own method is calling: up the stack, it comes before a loop of Keras' or Stoker's."""
    ours, loops = _codes(model, name), {verb, inspect.unwrap(getattr(TensorFlowTrainer, name)).__code__}
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code not in loops:
        if frame.f_code in ours and (ours[frame.f_code] or _first_argument(frame) is model):
            return True
        frame = frame.f_back
    return False


def _codes(model: Model, name: str) -> dict[CodeType, bool]:
    """Return the code of a model's own method and of those it may pass on to; True for a method of this very object."""
    found: dict[CodeType, bool] = {}
    places = [*type(model).__mro__[: type(model).__mro__.index(TensorFlowTrainer)]]
    for method, alone in [*((vars(one).get(name), False) for one in places), (vars(model).get(name), True)]:
        code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
        if code is not None:
            found[code] = alone
    return found


def _first_argument(frame: FrameType) -> object:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None


def _check_again(redirect: Redirect, added: Mapping[str, object]) -> None:
    if redirect.calls > 1 and added.get("checkpoint") is not None:
        raise ArgumentError(
            f"{type(redirect.model).__name__}.fit calls Keras' fit more than once, and a checkpoint holds one "
            "training: leave checkpoint= out"
        )


def _warn_of_no_call(model: Model, name: str, added: Mapping[str, object]) -> None:
    lost = f"; {', '.join(f'{option}=' for option in added)} had no effect" if added else ""
    # The calling line outside of Stoker.
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_ROOT):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{type(model).__name__}.{name} never called Keras' {name}: it ran as it is, without Stoker{lost}",
        stacklevel=level,
    )
