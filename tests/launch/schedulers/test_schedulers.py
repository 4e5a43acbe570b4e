"""The registry: which scheduler started a process, and the place that each one finds."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import UsageError
from stoker.launch import environments
from stoker.launch.place import WorkerPlace, build_tf_config
from stoker.launch.schedulers import SCHEDULERS, Kubernetes, Local, Scheduler, TfConfig, detect
from tests.launch.schedulers.test_slurm import STEP

POD = {
    "JOB_COMPLETION_INDEX": "1",
    "STOKER_POD_COUNT": "2",
    "STOKER_POD_ADDRESS": "train-worker-0-{rank}.train:2222",
}


@pytest.mark.parametrize(
    ("variables", "kind", "place"),
    [
        ({}, Local, WorkerPlace(0, ["localhost:0"])),
        (
            {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
                )
            },
            TfConfig,
            WorkerPlace(1, ["a:1", "b:2"]),
        ),
        (
            {
                "TF_CONFIG": json.dumps(
                    {
                        "cluster": {"chief": ["c:1"], "worker": ["a:1", "b:2"]},
                        "task": {"type": "worker", "index": 1},
                    }
                )
            },
            TfConfig,
            WorkerPlace(2, ["c:1", "a:1", "b:2"]),
        ),
        (POD, Kubernetes, WorkerPlace(1, ["train-worker-0-0.train:2222", "train-worker-0-1.train:2222"])),
    ],
)
def test_every_scheduler_finds_the_place_of_its_workers(
    variables: Mapping[str, str], kind: type, place: WorkerPlace
) -> None:
    scheduler = detect(variables)
    assert type(scheduler) is kind
    assert scheduler.find_place() == place


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TF_CONFIG": "{"}, 'TF_CONFIG must be JSON with "cluster" and "task", not \'{\''),
        (
            {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}
                )
            },
            "TF_CONFIG: task worker 1 is not one of the 1 workers",
        ),
        (STEP | {"SLURM_PROCID": "x"}, "slurm: SLURM_PROCID must be a whole number, not 'x'"),
        (
            {k: v for k, v in STEP.items() if k != "SLURM_STEP_NODELIST"},
            "slurm: SLURM_STEP_NODELIST is not set: is this process part of a job?",
        ),
        (
            POD | {"JOB_COMPLETION_INDEX": "2"},
            "kubernetes: JOB_COMPLETION_INDEX is 2, but STOKER_POD_COUNT is only 2",
        ),
    ],
)
def test_variables_that_make_no_sense_give_one_line(variables: Mapping[str, str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        detect(variables).find_place()
    assert str(error.value) == said


@given(st.integers(1, 9), st.data())
def test_tf_config_holds_the_same_place(size: int, data: st.DataObject) -> None:
    place = WorkerPlace(data.draw(st.integers(0, size - 1)), [f"host:{port}" for port in range(size)])
    text = json.dumps(build_tf_config(place))
    assert TfConfig({"TF_CONFIG": text}).find_place() == place


def test_entering_a_job_sets_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", dict(POD))
    place = environments.enter()
    assert TfConfig(os.environ).find_place() == place
    assert (os.environ["STOKER_RANK"], os.environ["STOKER_SIZE"]) == ("1", "2")


def test_a_single_process_gets_no_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert environments.enter().size == 1
    assert "TF_CONFIG" not in os.environ


@pytest.mark.parametrize("kind", SCHEDULERS.values(), ids=SCHEDULERS)
def test_jobs_are_submitted_only_to_schedulers_that_take_them(kind: type[Scheduler]) -> None:
    assert kind.takes_submissions == (kind.build_submission is not Scheduler.build_submission)


def test_restarts_count_where_the_scheduler_restarts_the_job() -> None:
    variables = {"STOKER_RESTART": "2"}
    counts = {name: kind(variables).count_restarts() for name, kind in SCHEDULERS.items()}
    assert counts == {"tf-config": 2, "slurm": 0, "kubernetes": 2, "ray": 2, "ssh": 0, "local": 0}
