"""Folding raw totals into accounts."""

from __future__ import annotations

import pytest

from stoker.doctor.diagnosis.ledger import accounts, device
from stoker.doctor.probes.graph_calls import CalledFunction, Execution
from stoker.doctor.probes.profiler_trace import Summary
from tests.samples import SECOND, measurements

WINDOWS = Summary(
    windows=1,
    window_ns=1000,
    graph_ns=500,
    graph_input_ns=100,
    graph_busy_ns=300,
    eager_ns=100,
    eager_kernel_ns=25,
    busy_ns=400,
)
TOTALS = {"startup": 2 * SECOND, "graph": 5 * SECOND, "eager": 2 * SECOND, "sync": SECOND}


def test_windows_take_the_mixtures_apart() -> None:
    folded = accounts(measurements(totals=TOTALS, windows=WINDOWS))
    assert folded["input"] == pytest.approx(1.0)
    assert folded["compute"] == pytest.approx(3.0 + 0.5)
    assert folded["dispatch"] == pytest.approx(1.0 + 1.5)
    assert sum(folded.values()) == pytest.approx(10.0)


def test_without_a_window_a_graph_computes_and_an_op_dispatches() -> None:
    folded = accounts(measurements(totals=TOTALS))
    assert (folded["compute"], folded["dispatch"]) == (5.0, 2.0)


def test_on_a_gpu_the_host_only_launches() -> None:
    folded = accounts(measurements(totals=TOTALS, windows=WINDOWS, device_kind="GPU"))
    assert (folded["compute"], folded["dispatch"]) == (0.0, 7.0)


def test_first_calls_are_graph_building() -> None:
    called = CalledFunction("step", None, executions={b"a": Execution(11, 3 * SECOND, 2 * SECOND)})
    folded = accounts(measurements(totals=TOTALS, called=[called]))
    assert folded["trace"] == pytest.approx(1.9)
    assert folded["compute"] == pytest.approx(3.1)
    assert sum(folded.values()) == pytest.approx(10.0)


def test_a_function_called_once_is_not_taken_for_graph_building() -> None:
    called = CalledFunction("epoch", None, executions={b"a": Execution(1, 5 * SECOND, 5 * SECOND)})
    assert accounts(measurements(totals=TOTALS, called=[called]))["trace"] == 0.0


def test_the_devices_book() -> None:
    assert device(measurements(windows=WINDOWS)).busy == 0.4
    assert device(measurements()).busy is None
    assert device(measurements(gpu_load=0.7, device_kind="GPU")).busy == 0.7
