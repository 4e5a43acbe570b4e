"""Guards hold in their own context only, and leave TensorFlow exactly as it was, whatever happens."""

from __future__ import annotations

import contextlib
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stoker
from stoker.doctor.guard import scope

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")


def tensorflow_as_it_is() -> list[Any]:
    """Every type and module a guard may touch, attribute by attribute, and the buffer slot."""
    from keras.src.callbacks import callback_list
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.distribute import mirrored_run
    from tensorflow.python.eager import backprop
    from tensorflow.python.eager.polymorphic_function import polymorphic_function, tracing_compilation
    from tensorflow.python.framework import constant_op, ops

    from stoker.doctor.attach.buffer_slot import buffer_slot

    touched = (
        ops.EagerTensor,
        polymorphic_function.Function,
        backprop.GradientTape,
        callback_list.CallbackList,
        mirrored_run._MirroredReplicaThread,
        ThreadPoolExecutor,
        threading.Thread,
        pywrap_tfe,
        tracing_compilation,
        constant_op,
    )
    return [dict(vars(owner)) for owner in touched] + [buffer_slot(ops.EagerTensor).value]


@pytest.fixture(scope="module")
def before() -> list[Any]:
    return tensorflow_as_it_is()


@pytest.fixture(autouse=True)
def nothing_left_behind(before: list[Any]) -> Any:
    yield
    gc.collect()
    assert tensorflow_as_it_is() == before
    assert not [region for region in scope.current() if region.open]


def read() -> float:
    return float(tf.random.uniform([]))


def test_while_a_guard_is_open_the_types_differ(before: list[Any]) -> None:
    with stoker.guard():
        now = tensorflow_as_it_is()
    assert now[0] != before[0]
    assert now[-1] != before[-1]


class Trouble(BaseException):
    """An exception of the program's own, of the kind few handlers catch."""


# A program of nested regions: (what to open, what to do inside, how to end).
PROGRAMS = st.recursive(
    st.sampled_from(["read", "trouble", "nothing", "swallow"]),
    lambda inside: st.tuples(
        st.sampled_from(["guard", "record", "allow", "again", "generator", "abandoned"]),
        st.lists(inside, max_size=3),
    ),
    max_leaves=12,
)


def run_program(program: Any, guards: list[Any], depth: int = 0) -> None:
    if program == "read":
        read()
    elif program == "trouble":
        raise Trouble
    elif program == "swallow":
        with contextlib.suppress(stoker.GuardError):
            read()
    elif isinstance(program, tuple):
        opener, parts = program
        if opener in ("generator", "abandoned"):
            run_in_generator(parts, guards, depth, opener == "abandoned")
            return
        openers: dict[str, Any] = {
            "guard": lambda: stoker.guard(retraces=None),
            "record": lambda: stoker.guard(action="record"),
            "allow": lambda: stoker.allow("on purpose"),
            # The same guard object, possibly open already.
            "again": lambda: guards[0],
        }
        with openers[opener]():
            for part in parts:
                run_program(part, guards, depth + 1)


def run_in_generator(parts: list[Any], guards: list[Any], depth: int, abandon: bool) -> None:
    def generator() -> Any:
        with stoker.guard(retraces=None):
            yield 1
            for part in parts:
                run_program(part, guards, depth + 1)
            yield 2

    running = generator()
    next(running)
    if not abandon:
        for _ in running:
            pass


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=PROGRAMS)
def test_any_nesting_and_any_exception_restore_the_types(program: Any, before: list[Any]) -> None:
    with contextlib.suppress(stoker.GuardError, Trouble):
        run_program(program, [stoker.guard(retraces=None)])
    assert tensorflow_as_it_is() == before
    assert isinstance(read(), float)


def test_another_threads_read_is_not_caught() -> None:
    values: list[float] = []
    with stoker.guard():
        thread = threading.Thread(target=lambda: values.append(read()))
        thread.start()
        thread.join()
    assert len(values) == 1


def test_eight_threads_never_see_each_others_guards() -> None:
    start = threading.Barrier(8)
    results: dict[int, list[str]] = {}

    def work(number: int) -> None:
        seen = results[number] = []
        start.wait()
        for _ in range(40):
            try:
                if number % 2:
                    with stoker.guard() as report:
                        read()
                    assert report.syncs == 0
                else:
                    read()
                seen.append("free")
            except stoker.SyncError as error:
                assert error.report is not None
                assert error.report.syncs == 1
                seen.append("caught")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: set(seen) for n, seen in results.items()} == {
        n: {"caught"} if n % 2 else {"free"} for n in range(8)
    }
    assert all(len(seen) == 40 for seen in results.values())


def test_a_pools_worker_is_watched_when_asked_for() -> None:
    with ThreadPoolExecutor(1) as pool:
        with stoker.guard():
            assert isinstance(pool.submit(read).result(), float)
        with stoker.guard(threads=True), pytest.raises(stoker.SyncError):
            pool.submit(read).result()
        with stoker.guard(), pytest.raises(stoker.SyncError):
            pool.submit(stoker.bind(read)).result()
        assert isinstance(pool.submit(read).result(), float)


def test_a_thread_started_under_the_guard_is_watched_when_asked_for() -> None:
    with stoker.guard(threads=True, action="record") as report:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert report.syncs == 1


def test_a_generator_finished_in_another_thread_leaves_nothing() -> None:
    def generator() -> Any:
        with stoker.guard(retraces=None):
            yield 1

    running = generator()
    next(running)
    thread = threading.Thread(target=running.close)
    thread.start()
    thread.join()
    assert isinstance(read(), float)
