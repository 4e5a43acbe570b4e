"""What is to run, and as whom: the words that start a worker, and the variables that tell it its place."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from stoker.doctor.measure.launch import RUN_ID, Target
from stoker.doctor.probes.environment import matters
from stoker.launch.environments import RANK, SIZE, Place, tf_config

JOB, RESTART = "STOKER_JOB", "STOKER_RESTART"


@dataclass(frozen=True)
class Job:
    """A program that several workers run; with `ledger`, each under `stoker run`."""

    id: str
    target: Target
    ledger: bool = False
    # Somebody else starts the other workers; this is the one of here.
    place: Place | None = None
    # How often the whole job was started again before `stoker launch` came.
    restarts: int = 0

    @property
    def directory(self) -> str:
        """Where workers run, on every machine."""
        return os.getcwd()

    @property
    def arguments(self) -> list[str]:
        """What Python is started with."""
        words = (["-m"] if self.target.is_module else []) + [self.target.name, *self.target.arguments]
        return ["-m", "stoker", "run", "--quiet", *words] if self.ledger else words

    def environment(self) -> dict[str, str]:
        """The variables that all workers share, wherever they are: those of here that steer TensorFlow, and ours."""
        here = {name: value for name, value in os.environ.items() if matters(name) or _ours(name)}
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        # Output must be seen when it is written, not when a buffer is full.
        return {**here, **path, JOB: self.id, "PYTHONUNBUFFERED": "1"}

    def of_worker(self, rank: int, addresses: list[str], restart: int) -> dict[str, str]:
        """The variables of one worker."""
        place = {RANK: str(rank), SIZE: str(len(addresses)), RESTART: str(self.restarts + restart)}
        place["TF_CONFIG"] = json.dumps(tf_config(Place(rank, addresses)))
        # The record of a later start replaces that of an earlier one.
        return place | ({RUN_ID: f"{self.id}-{rank}"} if self.ledger else {})


def _ours(name: str) -> bool:
    return name.startswith("STOKER_") and name not in (JOB, RANK, SIZE, RESTART, RUN_ID)
