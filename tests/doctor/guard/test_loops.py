"""Guards over whole loops count right: Keras, a compiled step, an eager one, a strategy; CPU and device alike."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doctor.guard.conftest import Facts

# What 64 rows in batches of 8 come to; `lines` are the syncs by the user's function.
EXPECTED: dict[str, dict[str, Any]] = {
    # Two epochs. Keras itself reads once a step and once an epoch: no line of the program asks for it.
    "fit": {"steps": 16, "syncs": 0, "copies": 0, "retraces": 0, "framework_syncs": 34, "over": []},
    "fit with a reading callback": {
        "steps": 16,
        "syncs": 16,
        "lines": [[16, "on_train_batch_end"]],
        "framework_syncs": 34,
        "over": ["syncs"],
    },
    "fit, warm": {"steps": 16, "syncs": 0, "over": []},
    "fit, four steps an execution": {"steps": 8, "syncs": 0, "framework_syncs": 5},
    # Ten steps: a loss read in each, the weights in two, one batch of another shape. Each step copies 8 (once 4)
    # rows of 8 columns; the labels of that short batch are too small to count.
    "function loop": {
        "steps": 10,
        "syncs": 12,
        "lines": [[10, "function_loop"], [2, "function_loop"]],
        "copies": 10,
        "copied_bytes": 9 * 8 * 8 * 4 + 4 * 8 * 4,
        "retraces": 1,
        "over": ["retraces", "syncs"],
    },
    "function loop, warm": {"steps": 10, "syncs": 8, "copies": 7, "retraces": 1},
    "eager loop": {"steps": 5, "syncs": 5, "retraces": 0, "over": []},
    "mirrored loop": {"steps": 4, "syncs": 4, "lines": [[4, "mirrored_loop"]], "retraces": 0},
    # Three runs on two replicas, each of which reads in its own thread.
    "mirrored eager": {"syncs": 6, "lines": [[6, "replica"]], "framework_syncs": 0},
    "mirrored fit": {"steps": 8, "syncs": 8, "lines": [[8, "on_train_batch_end"]], "framework_syncs": 17},
}


@pytest.mark.slow
@pytest.mark.parametrize("loop", EXPECTED)
def test_a_loop_on_two_software_gpus(loop: str, on_software_gpu: Facts) -> None:
    seen = on_software_gpu("loops", "gpu")[loop]
    assert {name: seen[name] for name in EXPECTED[loop]} == EXPECTED[loop]


@pytest.mark.slow
@pytest.mark.parametrize("loop", EXPECTED)
def test_a_loop_on_the_cpu(loop: str, on_cpu: Facts) -> None:
    seen = on_cpu("loops", "cpu")[loop]
    assert {name: seen[name] for name in EXPECTED[loop]} == EXPECTED[loop]
