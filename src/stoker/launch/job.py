"""The job that runs: the command that starts a worker, and the environment that tells it its place."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from stoker.doctor.measure.launch import RUN_ID, Target
from stoker.doctor.probes.environment import matters
from stoker.launch.place import JOB, RANK, RESTART, SIZE, WorkerPlace, build_tf_config


@dataclass(frozen=True)
class LaunchJob:
    """A program that several workers run: with `ledger`, each under `stoker run`; with `standby`, each with a spare."""

    id: str
    target: Target
    ledger: bool = False
    # Set if a scheduler starts the other workers and this job runs only the one at this place.
    place: WorkerPlace | None = None
    # How many times the scheduler restarted the whole job before this `stoker launch` began.
    restarts: int = 0
    standby: bool = False

    @property
    def directory(self) -> str:
        """The directory in which workers run, the same on every machine."""
        return os.getcwd()

    @property
    def arguments(self) -> list[str]:
        """The arguments of the Python that runs a worker."""
        words = (["-m"] if self.target.is_module else []) + [self.target.name, *self.target.arguments]
        return ["-m", "stoker", "run", "--quiet", *words] if self.ledger else words

    def build_shared_environment(self) -> dict[str, str]:
        """Return the variables that every worker gets: those set here that affect TensorFlow, and Stoker's own."""
        ours = {name: value for name, value in os.environ.items() if matters(name) or _is_inherited(name)}
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        # Show output when it is written, not when a buffer is full.
        return {**ours, **path, JOB: self.id, "PYTHONUNBUFFERED": "1"}

    def build_worker_environment(self, rank: int, addresses: list[str], restart: int) -> dict[str, str]:
        """Return the variables of one worker."""
        variables = {RANK: str(rank), SIZE: str(len(addresses)), RESTART: str(self.restarts + restart)}
        variables["TF_CONFIG"] = json.dumps(build_tf_config(WorkerPlace(rank, addresses)))
        # After a restart, the worker's new record replaces the earlier one.
        return variables | ({RUN_ID: f"{self.id}-{rank}"} if self.ledger else {})


def _is_inherited(name: str) -> bool:
    """Return whether a worker inherits this variable of Stoker's. Each worker has its own place and id."""
    return name.startswith("STOKER_") and name not in (JOB, RANK, SIZE, RESTART, RUN_ID)
