"""Who am I in a job that somebody else started? One small class for each that starts jobs; each only says rank, size
and addresses.

    place = detect(os.environ)
    place.rank, place.size, place.addresses

| module | subject |
|---|---|
| place | what they all say |
| tf_config | TF_CONFIG is set already: TFJob, Vertex AI, a script |
| slurm | a task of `srun` |
| kubernetes | a pod of an Indexed Job, as `stoker launch --engine kubernetes` writes it |
| local | nobody else: one process |
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.distributed.environments.kubernetes import Kubernetes
from stoker.distributed.environments.local import Local
from stoker.distributed.environments.place import Environment, Place
from stoker.distributed.environments.slurm import Slurm
from stoker.distributed.environments.tf_config import TfConfig

# Who says more exactly where we are comes first.
ENVIRONMENTS: tuple[type[Environment], ...] = (TfConfig, Slurm, Kubernetes, Local)


def detect(variables: Mapping[str, str]) -> Environment:
    """The environment these variables are of."""
    return next(kind for kind in ENVIRONMENTS if kind.here(variables))(variables)


__all__ = ["ENVIRONMENTS", "Environment", "Kubernetes", "Local", "Place", "Slurm", "TfConfig", "detect"]
