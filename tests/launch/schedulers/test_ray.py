"""A real Ray cluster on this machine, with agents as actors: a job survives the kill of a worker."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.launch.support import launch, read_notes
from tests.support import run_plain, write_program

# On a busy machine Ray takes a minute to start.
PATIENT = {"RAY_raylet_start_wait_time_s": "300"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray (stoker[ray])"),
]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)


def test_a_job_on_ray_starts_again_when_a_worker_is_killed(tmp_path: Path) -> None:
    program = """
if restart == 0:
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
note("end", os.environ.get("TF_USE_LEGACY_KERAS", "no"))
print("worker", rank)
"""
    outcome = launch(tmp_path, program, "-n", "2", "--scheduler", "ray")
    assert outcome.code == 0, outcome.stderr
    assert sorted(outcome.stdout.splitlines()) == ["[0] worker 0", "[1] worker 1"]
    assert "worker 1 was killed by SIGKILL; restarting all workers (1 of 3)" in outcome.stderr
    assert read_notes(tmp_path, "end") == {(1, 0): "no", (1, 1): "no"}


def test_a_job_that_is_too_large_for_the_cluster_gives_one_line(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "", "-n", "500", "--scheduler", "ray")
    assert outcome.code == 1
    assert "stoker: the job needs 500 workers, but the machines have room for " in outcome.stderr


def test_workers_of_ray_train_find_each_other(tmp_path: Path) -> None:
    pytest.importorskip("ray.train", reason="no Ray Train (stoker[ray])")
    program = """
import os
import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

def loop():
    from stoker.launch import environments
    place = environments.enter()
    open(f"{HERE}/place-{place.rank}", "w").write(os.environ["TF_CONFIG"])

HERE = os.getcwd()
ray.init(log_to_driver=False)
DataParallelTrainer(
    loop,
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
    run_config=RunConfig(storage_path=HERE + "/storage"),
).fit()
"""
    write_program(tmp_path, program)
    outcome = run_plain(tmp_path, "train.py")
    assert outcome.code == 0, outcome.stderr[-2000:]
    told = [json.loads((tmp_path / f"place-{rank}").read_text()) for rank in range(2)]
    assert told[0]["cluster"] == told[1]["cluster"]
    assert len(set(told[0]["cluster"]["worker"])) == 2
    assert [one["task"]["index"] for one in told] == [0, 1]
