"""Decorated functions: a region around every call, also of generators and coroutines.

A generator's body runs in pieces, in its consumer's context. The region is entered for each piece and suspended in
between, so that the consumer's own code is not watched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from stoker.guards import scope


class _Call:
    """One call: its region, entered and left piece by piece."""

    def __init__(self, make: Callable[[], scope.Region]) -> None:
        self._region = make()
        self._region.begin()

    def __enter__(self) -> None:
        scope.enter(self._region)

    def __exit__(self, *_: object) -> None:
        scope.suspend(self._region)

    def finish(self, error: BaseException | None) -> None:
        scope.leave(self._region)
        self._region.end(error)


def watched_function(function: Any, make: Callable[[], scope.Region]) -> Any:
    """`function` with a new region of `make()` around every call."""
    if inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, make)
    elif inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, make)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, make)
    else:
        wrapper = _plain(function, make)
    return functools.wraps(function)(wrapper)


def _plain(function: Any, make: Callable[[], scope.Region]) -> Any:
    def run(*args: Any, **kwds: Any) -> Any:
        __tracebackhide__ = True
        call = _Call(make)
        failed: BaseException | None = None
        try:
            with call:
                return function(*args, **kwds)
        except BaseException as error:
            failed = error
            raise
        finally:
            call.finish(failed)

    return run


def _coroutine(function: Any, make: Callable[[], scope.Region]) -> Any:
    async def run(*args: Any, **kwds: Any) -> Any:
        __tracebackhide__ = True
        call = _Call(make)
        failed: BaseException | None = None
        try:
            with call:
                return await function(*args, **kwds)
        except BaseException as error:
            failed = error
            raise
        finally:
            call.finish(failed)

    return run


def _generator(function: Any, make: Callable[[], scope.Region]) -> Any:
    def run(*args: Any, **kwds: Any) -> Generator[Any, Any, Any]:
        call = _Call(make)
        failed: BaseException | None = None
        generator = function(*args, **kwds)
        resume: Callable[[], Any] = functools.partial(next, generator)
        try:
            while True:
                try:
                    with call:
                        value = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield value
                    resume = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with call:
                        generator.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - handed to the generator it was meant for
                    resume = functools.partial(generator.throw, thrown)
        except BaseException as error:
            failed = error
            raise
        finally:
            call.finish(failed)

    return run


def _async_generator(function: Any, make: Callable[[], scope.Region]) -> Any:
    async def run(*args: Any, **kwds: Any) -> AsyncGenerator[Any, Any]:
        call = _Call(make)
        failed: BaseException | None = None
        generator = function(*args, **kwds)
        resume: Callable[[], Any] = generator.__anext__
        try:
            while True:
                try:
                    with call:
                        value = await resume()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield value
                    resume = functools.partial(generator.asend, sent)
                except GeneratorExit:
                    with call:
                        await generator.aclose()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - as above
                    resume = functools.partial(generator.athrow, thrown)
        except BaseException as error:
            failed = error
            raise
        finally:
            call.finish(failed)

    return run
