"""The record of a job, from those of its workers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from stoker.doctor.diagnosis.jobs import job_record
from stoker.records import ACCOUNTS, Record
from tests.samples import sample_finding, sample_record


def worker(rank: int, exchanged: float, **accounts: float) -> Record:
    """Ten seconds, 100 steps; what is not said otherwise is kernels."""
    spent = {**dict.fromkeys(ACCOUNTS, 0.0), "startup": 2.0, "communication": exchanged, **accounts}
    spent["compute"] = 10.0 - sum(spent.values())
    return dataclasses.replace(
        sample_record(),
        id=f"job-{rank}",
        wall_s=10.0,
        steps=100,
        accounts=spent,
        findings=[],
        examples_per_s=50.0,
    )


def test_the_job_is_its_mean_worker_and_all_their_examples() -> None:
    job = job_record("job-job", {0: worker(0, 3.0), 1: worker(1, 1.0)}, exit_code=0, restarts=2)
    assert (job.id, job.exit_code, job.wall_s, job.examples_per_s) == ("job-job", 0, 10.0, 100.0)
    assert job.accounts["communication"] == 2.0
    assert sum(job.accounts.values()) == pytest.approx(job.wall_s)
    assert (job.environment["workers"], job.environment["restarts"]) == (2, 2)
    assert Record.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_whoever_comes_last_to_the_exchange_waits_for_nobody() -> None:
    job = job_record("j", {0: worker(0, 3.0), 1: worker(1, 1.0), 2: worker(2, 4.0)}, 0, 0)
    assert [(row.rank, row.waiting_s, row.exchange_s) for row in job.tables.workers] == [
        (0, 2.0, 1.0),
        (1, 0.0, 1.0),
        (2, 3.0, 1.0),
    ]


def test_a_straggler_is_named_with_its_account_and_what_it_costs() -> None:
    slow = worker(1, 1.0, input=4.0)
    cause = sample_finding(kind="input-starved", code="STK308", file="train.py", line=7)
    slow = dataclasses.replace(slow, findings=[cause])
    job = job_record("j", {0: worker(0, 4.0), 1: slow, 2: worker(2, 5.0)}, 0, 0)
    (found,) = [f for f in job.findings if f.kind == "straggler"]
    assert (found.detail["worker"], found.detail["account"], found.lost_s) == (1, "input", 3.5)
    assert (found.file, found.line) == ("train.py", 7)
    assert "Worker 1 spends 4.00 s more on input" in found.remedy


def test_workers_that_wait_a_little_for_each_other_are_no_stragglers() -> None:
    job = job_record("j", {0: worker(0, 1.2), 1: worker(1, 1.0)}, 0, 0)
    assert job.findings == []


def test_the_same_finding_of_all_workers_is_one() -> None:
    finding = sample_finding(kind="sync-in-loop", lost_s=1.0)
    costlier = dataclasses.replace(finding, lost_s=2.0)
    workers = {
        0: dataclasses.replace(worker(0, 1.0), findings=[finding]),
        # Two functions at one line.
        1: dataclasses.replace(worker(1, 1.0), findings=[costlier, finding]),
    }
    (found,) = job_record("j", workers, 0, 0).findings
    assert (found.lost_s, found.detail["workers"]) == (2.0, [0, 1])


def test_a_job_of_one_worker_is_that_worker() -> None:
    alone = worker(0, 0.0)
    job = job_record("j", {0: alone}, 0, 0)
    assert (job.accounts, job.findings) == (alone.accounts, [])
