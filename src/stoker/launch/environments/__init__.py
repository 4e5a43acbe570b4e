"""Who am I in a job that somebody else started? One small class for each that starts jobs; each only says rank, size
and addresses.

    environments.enter()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

| module | subject |
|---|---|
| place | what they all say |
| tf_config | TF_CONFIG is set already: TFJob, Vertex AI, a script |
| slurm | a task of `srun` |
| kubernetes | a pod of an Indexed Job, as `stoker launch --engine kubernetes` writes it |
| ray | a worker of Ray Train |
| local | nobody else: one process |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from stoker.launch.environments.kubernetes import Kubernetes
from stoker.launch.environments.local import Local
from stoker.launch.environments.place import Environment, Place
from stoker.launch.environments.ray import Ray
from stoker.launch.environments.slurm import Slurm
from stoker.launch.environments.tf_config import TfConfig

# The worker's place in its job, beside TF_CONFIG.
RANK, SIZE = "STOKER_RANK", "STOKER_SIZE"

# Who says more exactly where we are comes first.
ENVIRONMENTS: tuple[type[Environment], ...] = (TfConfig, Slurm, Kubernetes, Ray, Local)


def detect(variables: Mapping[str, str]) -> Environment:
    """The environment these variables are of."""
    return next(kind for kind in ENVIRONMENTS if kind.here(variables))(variables)


def enter() -> Place:
    """Tell TensorFlow its place in the job that this process is part of, whoever started it; before any strategy.

    Raises:
        UsageError: the environment says something that makes no sense.
    """
    place = detect(os.environ).place()
    if place.size > 1:
        os.environ["TF_CONFIG"] = json.dumps(tf_config(place))
        os.environ |= {RANK: str(place.rank), SIZE: str(place.size)}
    return place


def tf_config(place: Place) -> dict[str, Any]:
    """What TensorFlow reads from TF_CONFIG: all workers are alike, the first is the chief."""
    return {"cluster": {"worker": place.addresses}, "task": {"type": "worker", "index": place.rank}}


__all__ = [
    "ENVIRONMENTS",
    "Environment",
    "Kubernetes",
    "Local",
    "Place",
    "Ray",
    "Slurm",
    "TfConfig",
    "detect",
    "enter",
    "tf_config",
]
