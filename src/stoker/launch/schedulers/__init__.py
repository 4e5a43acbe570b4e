"""The schedulers that jobs run on, one class in one module each.

A scheduler detects whether it started this process, plans where a job runs, and submits jobs that run later. To add
one, write its module and add its class to `SCHEDULERS`: its options and its name on the command line come with it.

| module | subject |
|---|---|
| base | the interface of every scheduler |
| tf_config | anything that sets TF_CONFIG: TFJob, Vertex AI, a script |
| slurm | SLURM: batch scripts, allocations, tasks of `srun` |
| kubernetes | Kubernetes: a JobSet or a TFJob, and their pods |
| kubernetes_fields | the fields of a JobSet, a TFJob and a pod |
| field_check | a strict check of a manifest against its fields |
| ray | Ray: agents as actors, workers of Ray Train |
| ssh | machines behind ssh |
| local | this machine |
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.launch.schedulers.base import Scheduler
from stoker.launch.schedulers.kubernetes import Kubernetes
from stoker.launch.schedulers.local import Local
from stoker.launch.schedulers.ray import Ray
from stoker.launch.schedulers.slurm import Slurm
from stoker.launch.schedulers.ssh import Ssh
from stoker.launch.schedulers.tf_config import TfConfig

# In the order in which they are asked whether they started a process: the most specific comes first.
SCHEDULERS: dict[str, type[Scheduler]] = {
    kind.name: kind for kind in (TfConfig, Slurm, Kubernetes, Ray, Ssh, Local)
}


def detect(variables: Mapping[str, str]) -> Scheduler:
    """Find the scheduler that started the process with these variables."""
    return next(kind for kind in SCHEDULERS.values() if kind.has_started(variables))(variables)


__all__ = ["SCHEDULERS", "Kubernetes", "Local", "Ray", "Scheduler", "Slurm", "Ssh", "TfConfig", "detect"]
