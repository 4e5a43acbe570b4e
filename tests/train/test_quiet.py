"""The host does not read the device at every step: seen on the software GPU, which counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support import HANGS_S, ROOT, no_software_gpu

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    if missing := no_software_gpu():
        pytest.skip(missing)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", "tests.train.programs.quiet_fit"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_reads_do_not_grow_with_the_steps(facts: dict[str, Any]) -> None:
    short, long = facts["short"], facts["long"]
    assert long["steps"] == 4 * short["steps"] == 640
    # Two epochs of one call each, loss and metric of each, and the optimizer's count at the start.
    assert short["d2h"] == short["reads"] == 5
    assert long == {**short, "steps": 640}
    assert long["retraces"] == 0


def test_a_trainer_that_watches_every_step_reads_no_more(facts: dict[str, Any]) -> None:
    short, long = facts["trainer short"], facts["trainer long"]
    assert long["steps"] == 4 * short["steps"] == 640
    # Two epochs of one call each, the loss of each and the note of what went wrong, and the optimizer's count. No
    # condition of the step (is the loss finite, are its gradients?) is brought to the host.
    assert short["d2h"] == short["reads"] == 5
    assert long == {**short, "steps": 640}


def test_a_step_that_is_not_sane_leaves_everything_as_it_was(facts: dict[str, Any]) -> None:
    assert facts["halted"] == {"updates": 30, "same": True}


def test_keras_reads_at_every_step(facts: dict[str, Any]) -> None:
    assert facts["keras"]["d2h"] >= 2 * facts["keras"]["steps"]


def test_a_model_on_two_devices_is_trained_as_on_one(facts: dict[str, Any]) -> None:
    found = facts["mirrored"]
    assert found["devices"] == ["GPU:0", "GPU:1"]
    assert found["apart"] < 1e-5
    assert found["copies"]
    assert found["history"][0] == pytest.approx(found["history"][1], abs=1e-5)
