"""Two replicas give the numbers of one device: for that several devices are needed, hence a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import HANGS_S

pytestmark = pytest.mark.tensorflow
PROGRAM = Path(__file__).with_name("replicas_program.py")


@pytest.fixture(scope="module")
def found() -> Any:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_update_is_that_of_the_whole_batch(found: Any) -> None:
    assert found["plain"] < 1e-5
    assert found["validation"] < 1e-5


def test_the_global_norm_is_that_of_all_replicas(found: Any) -> None:
    assert found["clip"] < 1e-5


def test_accumulation_rates_freezing_and_averages(found: Any) -> None:
    assert found["accumulated"] < 1e-5
    assert found["averaged"] > 1e-3, "averaged weights are not the last ones, on any replica"


def test_a_metric_is_that_of_all_replicas(found: Any) -> None:
    assert found["measured"]["apart"] < 1e-5
    assert found["measured"]["refused"].startswith("the metric 'error' was made outside of strategy.scope()")


def test_an_infinity_on_the_second_replica_alone_leaves_the_step_out_on_both(found: Any) -> None:
    assert found["overflow"]["updates"] == 1
    assert found["overflow"]["scale"] == 32.0
    assert found["overflow"]["apart"] < 1e-4


def test_an_evaluate_of_the_models_own_validates_and_a_reset_of_its_own_is_refused(found: Any) -> None:
    assert found["own methods"]["apart"] < 1e-6
    assert found["own methods"]["refused"].startswith("NeverResets has a reset_metrics of its own")


def test_nadam_is_refused(found: Any) -> None:
    assert found["nadam"].startswith("Nadam is not supported on several replicas")
