"""Folding raw totals into accounts."""

from __future__ import annotations

import pytest

from stoker.doctor.diagnosis.ledger import accounts, device_book
from stoker.doctor.probes.graph_calls import CalledFunction, Execution
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.functions import CallsPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.profiler_trace import WindowSummary
from tests.samples import SECOND, books, measurements

WINDOWS = WindowsPart(
    WindowSummary(
        windows=1,
        window_ns=1000,
        graph_ns=500,
        graph_input_ns=100,
        graph_busy_ns=300,
        eager_ns=100,
        eager_kernel_ns=25,
        busy_ns=400,
    )
)
BOOKS = books(startup=2 * SECOND, graph=5 * SECOND, eager=2 * SECOND, sync=SECOND)


def test_windows_take_the_mixtures_apart() -> None:
    folded = accounts(measurements(BOOKS, WINDOWS))
    assert folded["input"] == pytest.approx(1.0)
    assert folded["compute"] == pytest.approx(3.0 + 0.5)
    assert folded["dispatch"] == pytest.approx(1.0 + 1.5)
    assert sum(folded.values()) == pytest.approx(10.0)


def test_without_a_window_a_graph_computes_and_an_op_dispatches() -> None:
    folded = accounts(measurements(BOOKS))
    assert (folded["compute"], folded["dispatch"]) == (5.0, 2.0)


def test_on_a_gpu_the_host_only_launches() -> None:
    folded = accounts(measurements(BOOKS, WINDOWS, DevicePart("GPU")))
    assert (folded["compute"], folded["dispatch"]) == (0.0, 7.0)


def test_first_calls_are_graph_building() -> None:
    called = CalledFunction("step", None, executions={b"a": Execution(11, 3 * SECOND, 2 * SECOND)})
    folded = accounts(measurements(BOOKS, CallsPart([called])))
    assert folded["trace"] == pytest.approx(1.9)
    assert folded["compute"] == pytest.approx(3.1)
    assert sum(folded.values()) == pytest.approx(10.0)


def test_a_function_called_once_is_not_taken_for_graph_building() -> None:
    called = CalledFunction("epoch", None, executions={b"a": Execution(1, 5 * SECOND, 5 * SECOND)})
    assert accounts(measurements(BOOKS, CallsPart([called])))["trace"] == 0.0


def test_the_devices_book() -> None:
    assert device_book(measurements(WINDOWS)).busy == 0.4
    assert device_book(measurements()).busy is None
    assert device_book(measurements(DevicePart("GPU", load=0.7))).busy == 0.7
