"""Rank, size and addresses, from the variables of those who start jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import UsageError
from stoker.launch import environments
from stoker.launch.environments import Kubernetes, Local, Place, Slurm, TfConfig, detect, tf_config
from stoker.launch.environments.slurm import hostnames, task_counts

STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NODELIST": "gpu[08-10]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
}
POD = {
    "JOB_COMPLETION_INDEX": "1",
    "STOKER_POD_COUNT": "2",
    "STOKER_POD_ADDRESS": "train-worker-0-{rank}.train:2222",
}


@pytest.mark.parametrize(
    ("variables", "kind", "place"),
    [
        ({}, Local, Place(0, ["localhost:0"])),
        (
            {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
                )
            },
            TfConfig,
            Place(1, ["a:1", "b:2"]),
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
            Place(2, ["c:1", "a:1", "b:2"]),
        ),
        (POD, Kubernetes, Place(1, ["train-worker-0-0.train:2222", "train-worker-0-1.train:2222"])),
    ],
)
def test_every_environment_says_its_place(variables: Mapping[str, str], kind: type, place: Place) -> None:
    environment = detect(variables)
    assert type(environment) is kind
    assert environment.place() == place


def test_a_task_of_srun_knows_the_node_of_every_rank() -> None:
    place = detect(STEP).place()
    assert (place.rank, place.size) == (3, 5)
    hosts = [address.rpartition(":")[0] for address in place.addresses]
    assert hosts == ["gpu08", "gpu08", "gpu09", "gpu09", "gpu10"]
    assert len(set(place.addresses)) == 5
    other = detect(STEP | {"SLURM_JOB_ID": "4712", "SLURM_PROCID": "0"}).place()
    assert not set(other.addresses) & set(place.addresses)


def test_a_batch_script_is_no_task() -> None:
    assert not Slurm.here({"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"})


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TF_CONFIG": "{"}, 'TF_CONFIG is \'{\': it must be JSON with "cluster" and "task"'),
        (
            {
                "TF_CONFIG": json.dumps(
                    {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}
                )
            },
            "TF_CONFIG: the task worker 1 is none of the 1 workers",
        ),
        (STEP | {"SLURM_PROCID": "x"}, "slurm: the variable SLURM_PROCID must be a whole number, and is 'x'"),
        (
            {k: v for k, v in STEP.items() if k != "SLURM_STEP_NODELIST"},
            "slurm: the variable SLURM_STEP_NODELIST is not set: is this process part of a job?",
        ),
        (
            POD | {"JOB_COMPLETION_INDEX": "2"},
            "kubernetes: pod 2 of 2 at 'train-worker-0-{rank}.train:2222' makes no sense",
        ),
    ],
)
def test_variables_that_make_no_sense_are_one_line(variables: Mapping[str, str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        detect(variables).place()
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("a[9-11]-ib,b", ["a9-ib", "a10-ib", "a11-ib", "b"]),
    ],
)
def test_lists_of_nodes_as_slurm_writes_them(text: str, names: list[str]) -> None:
    assert hostnames(text) == names


@pytest.mark.parametrize("text", ["", "a[", "a[x]", "a[1]b[2]"])
def test_what_is_no_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a list of nodes"):
        hostnames(text)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 5)), min_size=1))
def test_numbers_of_tasks_as_slurm_writes_them(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)
    assert task_counts(text) == [count for count, times in runs for _ in range(times)]


@given(st.integers(1, 9), st.data())
def test_what_tensorflow_is_told_says_the_same_place(size: int, data: st.DataObject) -> None:
    place = Place(data.draw(st.integers(0, size - 1)), [f"host:{port}" for port in range(size)])
    text = json.dumps(tf_config(place))
    assert TfConfig({"TF_CONFIG": text}).place() == place


def test_entering_tells_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", dict(POD))
    place = environments.enter()
    assert TfConfig(os.environ).place() == place
    assert (os.environ["STOKER_RANK"], os.environ["STOKER_SIZE"]) == ("1", "2")


def test_who_is_alone_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert environments.enter().size == 1
    assert "TF_CONFIG" not in os.environ
