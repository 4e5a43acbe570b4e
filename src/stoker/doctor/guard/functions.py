"""Decorated functions: a region around every call, including calls of generators and coroutines.

A generator's body runs in pieces, in its consumer's context. The region is entered for each piece and suspended in
between, so that the consumer's own code is not watched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from stoker.doctor.guard import scope


class _Call:
    """A call, whose region lasts from beginning to end. Entering it returns the context in which each piece runs."""

    def __init__(self, make: Callable[[], scope.Region]) -> None:
        self._region = make()

    def __enter__(self) -> _Piece:
        self._region.begin()
        return _Piece(self._region)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        __tracebackhide__ = True
        scope.leave(self._region)
        self._region.end(error)


class _Piece:
    """The context of a call's pieces: the region is entered at the start of each piece and suspended at the end."""

    def __init__(self, region: scope.Region) -> None:
        self._region = region

    def __enter__(self) -> None:
        scope.enter(self._region)

    def __exit__(self, *_: object) -> None:
        scope.suspend(self._region)


def watch_function(function: Any, make: Callable[[], scope.Region]) -> Any:
    """Wrap `function` so that every call has a new region of `make()` around it."""
    if inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, make)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, make)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, make)
    else:
        wrapper = _watch_plain(function, make)
    return functools.wraps(function)(wrapper)


def _watch_plain(function: Any, make: Callable[[], scope.Region]) -> Any:
    def run(*args: Any, **kwds: Any) -> Any:
        __tracebackhide__ = True
        with _Call(make) as piece, piece:
            return function(*args, **kwds)

    return run


def _coroutine(function: Any, make: Callable[[], scope.Region]) -> Any:
    async def run(*args: Any, **kwds: Any) -> Any:
        __tracebackhide__ = True
        with _Call(make) as piece, piece:
            return await function(*args, **kwds)

    return run


def _generator(function: Any, make: Callable[[], scope.Region]) -> Any:
    def run(*args: Any, **kwds: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwds)
        resume: Callable[[], Any] = functools.partial(next, generator)
        with _Call(make) as piece:
            while True:
                try:
                    with piece:
                        value = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                    resume = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with piece:
                        generator.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - handed to the generator it was meant for
                    resume = functools.partial(generator.throw, thrown)

    return run


def _async_generator(function: Any, make: Callable[[], scope.Region]) -> Any:
    async def run(*args: Any, **kwds: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwds)
        resume: Callable[[], Any] = generator.__anext__
        with _Call(make) as piece:
            while True:
                try:
                    with piece:
                        value = await resume()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                    resume = functools.partial(generator.asend, sent)
                except GeneratorExit:
                    with piece:
                        await generator.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - handed to the generator it was meant for
                    resume = functools.partial(generator.athrow, thrown)

    return run
