"""TF_CONFIG is set already, by Kubeflow's TFJob, Vertex AI, SageMaker or a script."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.environments.place import Environment, Place


class TfConfig(Environment):
    """A chief, if there is one, is the first worker."""

    name = "tf-config"

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """Whether it is set."""
        return bool(variables.get("TF_CONFIG"))

    def place(self) -> Place:
        """As TensorFlow reads it."""
        try:
            config = json.loads(self.value("TF_CONFIG"))
            cluster, task = config["cluster"], config["task"]
            chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
            kind, index = task["type"], int(task["index"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f'TF_CONFIG is {self.value("TF_CONFIG")!r}: it must be JSON with "cluster" and "task"'
            ) from None
        addresses = [*chiefs, *workers]
        rank = index + (len(chiefs) if kind == "worker" else 0)
        if kind not in ("chief", "worker") or not 0 <= rank < len(addresses):
            raise UsageError(f"TF_CONFIG: the task {kind} {index} is none of the {len(addresses)} workers")
        return Place(rank, addresses)
