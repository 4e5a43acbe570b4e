"""Several devices, their memory, threads, strategies and saved models behave as with real GPUs."""

from __future__ import annotations

import pytest

from tests.doctor.software_gpu.conftest import Run


@pytest.mark.slow
def test_devices_are_listed_and_memory_growth_can_be_set(run: Run) -> None:
    fact = run("devices")["before_start"]
    assert fact == {"physical": ["/physical_device:GPU:0", "/physical_device:GPU:1"], "growth": True}


def test_ops_go_where_they_would_go_with_a_gpu(run: Run) -> None:
    fact = run("devices")["placement"]
    assert (fact["default"], fact["second"], fact["host"], fact["text"]) == (
        "GPU:0",
        "GPU:1",
        "CPU:0",
        "CPU:0",
    )
    assert fact["across"] == 0


def test_out_of_memory_is_tensorflows_own_error_and_memory_comes_back(run: Run) -> None:
    fact = run("devices")["out_of_memory"]
    assert "OOM when allocating tensor with shape[1024,1024,4]" in fact["message"]
    assert fact["limit"] == 256 * 1024**2
    # 16 tensors of 16 MiB fill the limit exactly; what the rest of the program holds takes the place of one
    # or two.
    assert fact["held"] in (14, 15)
    assert fact["peak"] <= fact["limit"]
    assert fact["recovered"] == 1024 * 1024 * 4


def test_mirrored_strategy_trains_on_both_devices_as_the_cpu_does(run: Run) -> None:
    fact = run("devices")["mirrored"]
    assert fact["replicas"] == 2
    assert fact["gpus"] == pytest.approx(fact["cpu"], rel=1e-5)
    assert all(launches > 0 for launches in fact["launches"])
    assert fact["fit"] == pytest.approx(fact["cpu"], rel=1e-5), "stoker.fit, many steps a call"
    assert all(launches > 0 for launches in fact["fit_launches"])


def test_eight_threads_compute_right_and_are_counted_exactly(run: Run) -> None:
    # Each thread: 25 additions and a reduction, then one read.
    assert run("devices")["threads"] == {"wrong": [], "launches": 8 * 26, "syncs": 8, "d2h": 8}


def test_checkpoints_saved_models_and_keras_files_come_back(run: Run) -> None:
    fact = run("devices")["saving"]
    assert fact == {"saved_model": [6.0], "checkpoint": 3.0, "device": "GPU:0", "keras": 0.0}


def test_a_meter_tells_what_one_call_did(run: Run) -> None:
    fact = run("devices")["metering"]
    read, feed = fact["read"], fact["feed"]
    assert (read["syncs"], read["d2h_count"], read["d2h_bytes"], read["h2d_count"]) == (1, 1, 2048, 0)
    assert (feed["syncs"], feed["h2d_count"], feed["h2d_bytes"], feed["d2h_count"]) == (0, 1, 2048, 0)
    assert 0 < read["wait_ns"] + read["copy_ns"] <= read["elapsed_ns"]


@pytest.mark.slow
def test_hidden_devices_stay_hidden(run: Run) -> None:
    fact = run("hidden")
    assert fact == {"none": 0, "second_only": ["GPU:0"], "launches": [0, 1], "device": "CPU:0"}
