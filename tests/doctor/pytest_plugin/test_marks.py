"""The pytest plug-in, from outside: test files are written, pytest runs them, its output is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stoker.doctor.software_gpu import build
from tests.support import no_software_gpu

pytest.importorskip("tensorflow")

HEAD = """
import numpy as np, pytest, tensorflow as tf, unittest
def read(times=1):
    for _ in range(times):
        float(tf.random.uniform([]))
"""


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=HEAD + text)
    return pytester.runpytest_inprocess("-p", "no:randomly", *options)


def test_each_marker_fails_a_passed_test_over_its_limit(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.limit_syncs(1)
def test_syncs(): read(3)

@pytest.mark.limit_syncs(3)
def test_syncs_within(): read(3)

@pytest.mark.limit_copies("1 KiB")
def test_copies(): tf.constant(np.zeros(1000, np.float32))

@pytest.mark.limit_retraces(1)
def test_retraces():
    step = tf.function(lambda n: n)
    for n in range(4): step(n)

@pytest.mark.limit_eager_ops(5)
def test_eager_ops():
    x = tf.zeros([2])
    for _ in range(10): x = x + 1.0

@pytest.mark.limit_syncs(0)
def test_none(): assert 1 + 1 == 2
""",
    )
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*_ test_syncs _*",
            "stoker: 3 syncs (12 B), over the limit of 1",
            "*- stoker -*",
            "3 syncs (12 B), over the limit of 1",
            "  test_it.py:4 in read   3 syncs, 12 B",
            "    float(tf.random.uniform(*",
            "*_ test_copies _*",
            "1 copy (3.9 KiB), over the limit of 1 KiB",
            "*_ test_retraces _*",
            "3 retraces, over the limit of 1",
            "    `<lambda>` traced again, `n`: 0 → 1",
            "*_ test_eager_ops _*",
            "*eager ops, over the limit of 5",
        ]
    )


def test_lines_are_ordered_by_count(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.limit_syncs(0)
def test_two_lines():
    float(tf.random.uniform([]))
    for _ in range(5):
        float(tf.random.uniform([]) + 1.0)
""",
    )
    result.stdout.fnmatch_lines(["  test_it.py:*   5 syncs, 20 B", "  test_it.py:*   1 sync, 4 B"])


def test_limits_a_step_and_warm_up(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def loop(reads, warm_reads=0):
    w = tf.Variable(1.0)
    step = tf.function(lambda: w.assign_add(1.0))
    for number in range(6):
        step()
        read(reads + (warm_reads if number < 2 else 0))

@pytest.mark.limit_syncs(1, per_step=True)
def test_one_a_step(): loop(1)

@pytest.mark.limit_syncs(1, per_step=True)
def test_two_a_step(): loop(2)

@pytest.mark.limit_syncs(0, warmup=2)
def test_warm(): loop(0, warm_reads=3)

@pytest.mark.limit_syncs(0, warmup=1)
def test_not_warm_enough(): loop(0, warm_reads=3)

@pytest.mark.limit_syncs(0, steps=3)
def test_no_such_option(): pass
""",
    )
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "stoker: 12 syncs (48 B), over the limit of 1 a step",
            "stoker: 3 syncs (12 B), over the limit of 0",
            "write @pytest.mark.limit_syncs(most), with per_step= and warmup= if you like",
        ]
    )


KINDS_OF_TESTS = """
@pytest.mark.limit_syncs(0)
class TestClass:
    def test_inherits(self): read()

    @pytest.mark.limit_syncs(1)
    def test_overrides(self): read()

@pytest.mark.limit_syncs(1)
@pytest.mark.parametrize("times", [1, 2])
def test_parameter(times): read(times)

class TestUnit(unittest.TestCase):
    @pytest.mark.limit_syncs(0)
    def test_unit(self): read()

class TestTensorFlow(tf.test.TestCase):
    @pytest.mark.limit_syncs(0)
    def test_tensorflow(self): read()

    @pytest.mark.limit_syncs(1)
    def test_tensorflow_within(self): self.assertAllClose(tf.zeros([2]), [0.0, 0.0])

@pytest.mark.limit_syncs(0)
@pytest.mark.filterwarnings("error")
def test_warnings_reset():
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.resetwarnings()
        read()

@pytest.mark.limit_syncs(0)
@pytest.mark.xfail
def test_expected_to_fail(): read(); assert False

@pytest.mark.limit_syncs(0)
def test_fails_by_itself(): read(); assert False, "its own failure"
"""


def test_classes_parameters_unittest_and_tensorflows_own_cases(pytester: pytest.Pytester) -> None:
    result = run(pytester, KINDS_OF_TESTS)
    failed = set(re.findall(r"FAILED test_it.py::(\S+)", result.stdout.str()))
    assert failed == {
        "TestClass::test_inherits",
        "test_parameter[2]",
        "TestUnit::test_unit",
        "TestTensorFlow::test_tensorflow",
        "test_warnings_reset",
        "test_fails_by_itself",
    }
    result.stdout.fnmatch_lines(["*its own failure*"])
    # `TestCase.test_session` of tf.test.TestCase skips itself.
    assert result.parseoutcomes()["xfailed"] == 1


@pytest.mark.slow
def test_under_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=HEAD + KINDS_OF_TESTS)
    result = pytester.runpytest_subprocess("-n", "2", "--stoker")
    failed = set(re.findall(r"FAILED test_it.py::(\S+)", result.stdout.str()))
    assert len(failed) == 6
    result.stdout.fnmatch_lines(["*- stoker -*", "*syncs*copies*copied*retraces*eager ops*test"])
    result.stdout.fnmatch_lines(["          2          0*test_it.py::test_parameter[[]2[]]"])


def test_the_table_has_every_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_quiet(): pass
def test_reads(): read(7)
def test_copies(): tf.constant(np.zeros(256, np.float32))
""",
        "--stoker",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "      syncs     copies     copied   retraces  eager ops  test",
            "          7          0        0 B          0 * test_it.py::test_reads",
            "          0          1    1.0 KiB          0 * test_it.py::test_copies",
            "          0          0        0 B          0          0  test_it.py::test_quiet",
        ]
    )


def test_an_increase_fails_until_it_is_gone(pytester: pytest.Pytester) -> None:
    def attempt(reads: int, size: int = 100) -> pytest.RunResult:
        body = f"def test_reads(): read({reads}); tf.constant(np.zeros({size}, np.float32))"
        return run(pytester, body, "--stoker-fail-on-increase")

    attempt(2).assert_outcomes(passed=1)
    attempt(2).assert_outcomes(passed=1)
    worse = attempt(3)
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["3 syncs, 2 in the last passing run", "  test_it.py:4 in read   3 syncs*"])
    attempt(3).assert_outcomes(failed=1)
    attempt(1).assert_outcomes(passed=1)
    attempt(2).assert_outcomes(failed=1)
    bigger = attempt(1, size=200)
    bigger.assert_outcomes(failed=1)
    bigger.stdout.fnmatch_lines(["800 B copied, 400 B in the last passing run"])


def test_without_markers_and_options_tensorflow_is_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_it(): assert 'tensorflow' not in sys.modules")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


ON_THE_DEVICE = """
def test_here():
    assert not tf.config.list_physical_devices("GPU")

@pytest.mark.limit_syncs(1)
def test_on_the_device(software_gpu):
    x = tf.random.uniform([1024])
    assert x.device.endswith("GPU:0")
    x.numpy()
    assert software_gpu.counters().d2h.count == 1

@pytest.mark.limit_syncs(0)
def test_over_its_limit(software_gpu):
    tf.random.uniform([1024]).numpy()

class TestUnit(unittest.TestCase):
    @pytest.mark.software_gpu(count=2)
    def test_two(self):
        self.assertEqual(len(tf.config.list_logical_devices("GPU")), 2)

def test_here_again():
    assert not tf.config.list_physical_devices("GPU")

@pytest.mark.software_gpu(count=2)
def test_dies():
    import os
    os._exit(7)
"""


# Pytester gives every test a home of its own; the build of the software GPU is in the real one.
CACHE = build.cache_directory().parent


@pytest.mark.slow
def test_the_software_gpu_fixture(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(CACHE))
    if missing := no_software_gpu():
        pytest.skip(missing)
    result = run(pytester, ON_THE_DEVICE, "--stoker")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "stoker: 1 sync (4.0 KiB), over the limit of 0",
            "    read a tensor: float32[[]1024[]], 4.0 KiB, on GPU:0",
            "the process for the software GPU ended with code 7 before this test",
            "          1          0 *test_it.py::test_on_the_device",
        ]
    )


def test_counts_are_kept_as_plain_numbers(pytester: pytest.Pytester) -> None:
    run(pytester, "def test_reads(): read(2)", "--stoker")
    (path,) = Path(pytester.path).rglob("stoker/counts")
    counts = json.loads(path.read_text(encoding="utf-8"))
    assert counts["test_it.py::test_reads"]["syncs"] == 2
