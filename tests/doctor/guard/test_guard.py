"""Guards over real code: limits, actions, allowed regions, steps, and what the error says."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import stoker
from stoker.errors import UsageError

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
np = pytest.importorskip("numpy")


def line_here() -> int:
    return sys._getframe(1).f_lineno


def test_importing_stoker_does_not_import_tensorflow() -> None:
    code = "import sys, stoker; stoker.guard; stoker.allow('x'); sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_error_names_the_line_and_the_value() -> None:
    loss = tf.zeros([32, 10])
    with pytest.raises(stoker.SyncError) as caught, stoker.guard():
        line = line_here() + 1
        loss.numpy()
    error = caught.value
    assert error.line is not None
    assert (error.line.file, error.line.line, error.line.count) == (__file__, line, 1)
    text = str(error)
    assert text.startswith("1 sync (1.2 KiB), over the limit of 0\n")
    assert "read `loss`: float32[32, 10], 1.2 KiB, on CPU:0" in text
    assert "loss.numpy()" in text
    assert "stoker.allow" in text
    shown = "".join(traceback.format_exception_only(error))
    assert shown.startswith("stoker.SyncError: 1 sync")
    assert type(pickle.loads(pickle.dumps(stoker.SyncError("told")))) is stoker.SyncError


def test_a_tensorflow_variable_is_named() -> None:
    weight = tf.Variable([1.0, 2.0], name="kernel")
    with pytest.raises(stoker.SyncError, match="read `kernel:0`"), stoker.guard():
        weight.numpy()


def test_a_count_may_pass_and_the_next_may_not() -> None:
    seen = 0
    with pytest.raises(stoker.SyncError, match="3 syncs"), stoker.guard(syncs=2):
        for _ in range(5):
            float(tf.random.uniform([]))
            seen += 1
    assert seen == 2


def test_a_limit_may_be_in_bytes() -> None:
    with stoker.guard(syncs="1 KiB") as report:
        for _ in range(4):
            tf.zeros([64]).numpy()
        assert (report.syncs, report.bytes["syncs"]) == (4, 1024)
        with pytest.raises(stoker.SyncError, match=r"over the limit of 1 KiB"):
            tf.zeros([1]).numpy()


def test_the_same_tensor_is_read_once() -> None:
    tensor = tf.zeros([3])
    with stoker.guard(syncs=1) as report:
        tensor.numpy()
        np.mean(tensor)
        str(tensor)
    assert report.syncs == 1


def test_copies_are_sized_and_named() -> None:
    batch = np.zeros([256, 1024], np.float32)
    with pytest.raises(stoker.CopyError) as caught, stoker.guard():
        tf.constant(batch)
        line = line_here() + 1
        tf.constant(batch)
    assert caught.value.line is not None
    assert caught.value.line.line == line
    assert "2 copies (2.0 MiB), over the limit of 1 MiB" in str(caught.value)
    assert "copied `batch`: ndarray float32[256, 1024], 1.0 MiB" in str(caught.value)


def test_constants_are_no_copies() -> None:
    with stoker.guard(copies=0) as report:
        x = tf.constant([1.0, 2.0, 3.0]) + 1.0
        tf.reshape(x, [3, 1])
        tf.zeros([2, 2]) + np.float32(3.0)
    assert report.copies == 0


def test_data_that_stays_on_the_host_is_no_copy() -> None:
    with stoker.guard(copies=0), tf.device("/CPU:0"):
        tf.constant(np.zeros([1000], np.float32))
    with stoker.guard(copies=0):
        tf.constant(np.zeros([1000], np.int32))


def test_a_retrace_names_the_argument() -> None:
    @tf.function
    def step(x: Any, scale: float) -> Any:
        return x * scale

    step(tf.zeros([3]), 1.0)
    with pytest.raises(stoker.RetraceError) as caught, stoker.guard():
        step(tf.ones([3]), 1.0)
        line = line_here() + 1
        step(tf.zeros([3]), 2.0)
    assert caught.value.line is not None
    assert caught.value.line.line == line
    assert "`step` traced again, `scale`: 1.0 → 2.0" in str(caught.value)


def test_a_changed_shape_is_told() -> None:
    step = tf.function(lambda x: x + 1.0)
    with stoker.guard(action="record") as report:
        step(tf.zeros([3]))
        step(tf.zeros([4]))
    assert report.retraces == 1
    assert "`x`: float32[3] → float32[4]" in report.text()


def test_the_first_trace_is_no_retrace_also_when_it_creates_variables() -> None:
    layer = keras.layers.Dense(2)
    made: list[Any] = []

    @tf.function
    def step(x: Any) -> Any:
        if not made:
            made.append(tf.Variable(1.0))
        return layer(x) * made[0]

    with stoker.guard():
        step(tf.zeros([1, 3]))
        step(tf.zeros([1, 3]))


def test_a_function_made_in_the_loop_is_a_retrace() -> None:
    with stoker.guard(action="record") as report:
        for _ in range(4):
            tf.function(lambda x: x * 2.0)(tf.zeros([2]))
    assert report.retraces == 3
    assert "created again" in report.text()


def test_eager_ops_are_limited() -> None:
    x = tf.zeros([2])
    with (
        pytest.raises(stoker.EagerOpError, match="11 eager ops, over the limit of 10"),
        stoker.guard(eager_ops=10),
    ):
        for _ in range(100):
            x = x + 1.0


def test_a_warning_comes_once_a_line_and_at_it() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with stoker.guard(action="warn"):
            for _ in range(3):
                line = line_here() + 1
                float(tf.random.uniform([]))
    (warning,) = caught
    assert warning.category is stoker.GuardWarning
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_recording_counts_by_line() -> None:
    with stoker.guard(action="record") as report:
        for _ in range(3):
            float(tf.random.uniform([]))
        float(tf.random.uniform([]))
    assert [line.count for line in report.ordered("syncs")] == [3, 1]
    assert report.over == {"syncs"}
    assert "4 syncs (16 B), over the limit of 0" in report.text()


def test_allowed_reads_are_counted_apart() -> None:
    with stoker.guard() as report:
        for number in range(4):
            x = tf.random.uniform([])
            if number % 2 == 0:
                with stoker.allow("log every 2 steps"):
                    float(x)
    assert report.syncs == 0
    assert report.allowed["log every 2 steps"]["syncs"] == 2


def test_allowing_speaks_to_the_guards_around_it_only() -> None:
    with stoker.guard() as outer, stoker.allow("meant"), stoker.guard(syncs=5) as inner:
        float(tf.random.uniform([]))
    assert (outer.syncs, inner.syncs) == (0, 1)


def test_nested_guards_both_count() -> None:
    with stoker.guard(syncs=3) as outer:
        float(tf.random.uniform([]))
        with stoker.guard(syncs=1) as inner:
            float(tf.random.uniform([]))
        float(tf.random.uniform([]))
    assert (outer.syncs, inner.syncs) == (3, 1)


def test_a_swallowed_error_does_not_end_the_counting() -> None:
    with stoker.guard() as report:
        for _ in range(2):
            with pytest.raises(stoker.SyncError):
                float(tf.random.uniform([]))
    assert report.syncs == 2


@stoker.guard(syncs=1)
def reads(times: int) -> None:
    for _ in range(times):
        float(tf.random.uniform([]))


def test_a_decorated_function_is_counted_call_by_call() -> None:
    reads(1)
    reads(1)
    with pytest.raises(stoker.SyncError):
        reads(2)
    assert reads.__name__ == "reads"


@stoker.guard()
def numbers(n: int) -> Iterator[int]:
    yield from range(n)
    if n > 2:
        float(tf.random.uniform([]))


def test_a_decorated_generator_does_not_watch_its_consumer() -> None:
    for _ in numbers(2):
        float(tf.random.uniform([]))
    with pytest.raises(stoker.SyncError):
        list(numbers(3))


@stoker.guard()
async def coroutine(read: bool) -> float:
    await asyncio.sleep(0)
    return float(tf.random.uniform([])) if read else 0.0


@stoker.guard()
async def stream(read: bool) -> AsyncIterator[int]:
    yield 1
    if read:
        float(tf.random.uniform([]))
    yield 2


def test_async_functions_are_watched_and_their_neighbours_not() -> None:
    async def neighbour() -> float:
        await asyncio.sleep(0)
        return float(tf.random.uniform([]))

    async def consume(read: bool) -> list[int]:
        seen = []
        async for item in stream(read):
            float(tf.random.uniform([]))
            seen.append(item)
        return seen

    async def main() -> None:
        results = await asyncio.gather(coroutine(True), neighbour(), coroutine(False), return_exceptions=True)
        assert [type(result) for result in results] == [stoker.SyncError, float, float]
        assert await consume(False) == [1, 2]
        with pytest.raises(stoker.SyncError):
            await consume(True)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "explode"}, "no action 'explode'"),
        ({"syncs": -1}, "syncs=-1 is not a limit"),
        ({"copies": "much"}, "copies='much' is not a limit"),
        ({"retraces": "1 MiB"}, "retraces='1 MiB' is not a limit"),
        ({"warmup": -1}, "warmup=-1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        stoker.guard(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_allow_wants_a_reason() -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        stoker.allow("")


def test_a_tensorflow_the_guard_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from stoker.doctor.guard import hooks

    monkeypatch.setattr(hooks, "_hooks", None)
    monkeypatch.setattr(tf, "__version__", "2.99.0")
    with pytest.raises(UsageError, match=r"TensorFlow 2.99.0 is not supported"), stoker.guard():
        pass


def test_what_the_framework_reads_for_itself_is_counted_apart() -> None:
    with stoker.guard() as report:
        tf.get_static_value(tf.random.uniform([3]))
    assert (report.syncs, report.framework_syncs) == (0, 1)
