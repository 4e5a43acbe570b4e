"""Jobs with TF_CONFIG: Kubeflow's TFJob, Vertex AI, SageMaker or a script."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.place import WorkerPlace
from stoker.launch.plan import LaunchPlan, plan_one_worker
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler


class TfConfig(Scheduler):
    """A job whose workers something else starts and restarts; a chief, if there is one, is the first worker."""

    name = "tf-config"

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return whether TF_CONFIG is set."""
        return bool(variables.get("TF_CONFIG"))

    def find_place(self) -> WorkerPlace:
        """Return the place that TensorFlow reads from TF_CONFIG."""
        text = self.get_variable("TF_CONFIG")
        try:
            config = json.loads(text)
            cluster, task = config["cluster"], config["task"]
            chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
            kind, index = task["type"], int(task["index"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(f'TF_CONFIG must be JSON with "cluster" and "task", not {text!r}') from None
        addresses = [*chiefs, *workers]
        rank = index + (len(chiefs) if kind == "worker" else 0)
        if kind not in ("chief", "worker") or not 0 <= rank < len(addresses):
            raise UsageError(f"TF_CONFIG: task {kind} {index} is not one of the {len(addresses)} workers")
        return WorkerPlace(rank, addresses)

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan the one worker that this process is."""
        return plan_one_worker(self.find_place())
