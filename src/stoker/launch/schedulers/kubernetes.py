"""Kubernetes: a JobSet, or a TFJob for clusters that have nothing else, with one pod for each worker.

The cluster starts and restarts the pods. The JobSet's failure policy ends all pods when one fails, starts all of them
again up to `--max-restarts` times, and does not count exit code 75 or a drained node. Inside its pod, `stoker launch`
works out the worker's place, watches its heartbeat and passes SIGTERM on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from stoker.errors import UsageError
from stoker.launch.limits import PREEMPTED
from stoker.launch.place import JOB, RESTART, WorkerPlace
from stoker.launch.plan import LaunchPlan, plan_one_worker
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler
from stoker.launch.schedulers.tf_config import TfConfig

if TYPE_CHECKING:
    from stoker.launch.schedulers.kubernetes_fields import Container, IndexedJobSpec, JobSet, PodSpec, TfJob

# Kubernetes sets the first variable; our manifest sets the others: the number of pods, and a pod's address with {rank}
# in it.
_INDEX, _WORKERS, _ADDRESS = "JOB_COMPLETION_INDEX", "STOKER_POD_COUNT", "STOKER_POD_ADDRESS"
_PORT = 2222
# The label in which JobSet counts restarts.
_RESTARTS = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
# Time to end, after the time to save.
_AFTER_GRACE_S = 15

# The fields of a pod as the user wrote them, before `check_fields`.
PodFields = dict[str, Any]


class Kubernetes(Scheduler):
    """The pods of an Indexed Job, which find each other by name."""

    name = "kubernetes"
    takes_submissions = True
    uses_image = True

    def __init__(
        self,
        variables: Mapping[str, str],
        image: str | None = None,
        pod: PodFields | None = None,
        kind: Literal["jobset", "tfjob"] = "jobset",
    ) -> None:
        super().__init__(variables)
        self._image, self._pod, self._kind = image, pod or {}, kind

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options that the manifest needs."""
        parser.add_argument("--image", metavar="IMAGE", help="kubernetes: the container image")
        parser.add_argument(
            "--pod", metavar="JSON", help="kubernetes: more fields of the pod's spec, or a file with them"
        )
        parser.add_argument(
            "--kind", choices=("jobset", "tfjob"), default="jobset", help="kubernetes: what to write"
        )

    @classmethod
    def from_options(cls, options: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
        """Make the scheduler from the options; `--pod` must be JSON, or a file with JSON."""
        return cls(variables, options.image, read_pod(options.pod), options.kind)

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return whether this is a numbered pod of a manifest that Stoker wrote."""
        return _INDEX in variables and _ADDRESS in variables

    def find_place(self) -> WorkerPlace:
        """Return the place, with the pod's number as the rank."""
        rank, size = self.get_number(_INDEX), self.get_number(_WORKERS)
        pattern = self.get_variable(_ADDRESS)
        if rank >= size:
            raise UsageError(f"kubernetes: {_INDEX} is {rank}, but {_WORKERS} is only {size}")
        if "{rank}" not in pattern:
            raise UsageError(f"kubernetes: {_ADDRESS} must contain {{rank}}, and is {pattern!r}")
        return WorkerPlace(rank, [pattern.replace("{rank}", str(pod)) for pod in range(size)])

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan the one worker that runs in this pod."""
        if not self.has_started(self._variables):
            raise UsageError(
                "--scheduler kubernetes runs inside a pod: write the manifest with --write job.yaml, "
                "then kubectl apply -f job.yaml"
            )
        return plan_one_worker(self.find_place())

    def build_submission(self, request: JobRequest) -> str:
        """Return the manifest, as YAML."""
        if not self._image:
            raise UsageError("--scheduler kubernetes needs a container image: --image registry/name:tag")
        build = build_job_set if self._kind == "jobset" else build_tf_job
        manifest = build(request, self._image, self._pod)
        try:
            import yaml
        except ImportError:
            raise UsageError("writing a manifest needs PyYAML: pip install 'stoker[kubernetes]'") from None
        return str(yaml.safe_dump(manifest, sort_keys=False))


def build_job_set(request: JobRequest, image: str, pod: PodFields) -> JobSet:
    """Build the JobSet; `pod` adds fields to the pod's spec and to its only container.

    Raises:
        UsageError: a field of `pod` is wrong.
    """
    from stoker.launch.schedulers import kubernetes_fields
    from stoker.launch.schedulers.field_check import check_fields

    name, workers = request.job_name, request.fixed_size
    container: Container = {
        "name": "worker",
        "image": image,
        "command": ["stoker", *request.build_arguments(Kubernetes.name, in_image=True)],
        "ports": [{"name": "tensorflow", "containerPort": _PORT}],
        "env": [
            {"name": _WORKERS, "value": str(workers)},
            {"name": _ADDRESS, "value": f"{name}-worker-0-{{rank}}.{name}:{_PORT}"},
            {"name": JOB, "value": name},
            {"name": RESTART, "valueFrom": {"fieldRef": {"fieldPath": _RESTARTS}}},
        ],
    }
    spec: PodSpec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(request.limits.grace_s) + _AFTER_GRACE_S,
        "containers": [container],
    }
    job: IndexedJobSpec = {
        "completionMode": "Indexed",
        "completions": workers,
        "parallelism": workers,
        "backoffLimit": 0,
        # Preempted workers and drained nodes end the Job for a reason of their own.
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": "worker", "operator": "In", "values": [PREEMPTED]},
                },
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": {"spec": merge_pod(spec, pod)},
    }
    made: JobSet = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": {
                "maxRestarts": request.limits.max_restarts,
                # An end for such a reason does not count as a restart.
                "rules": [
                    {
                        "name": "preempted",
                        "action": "RestartJobSetAndIgnoreMaxRestarts",
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            "network": {"enableDNSHostnames": True, "subdomain": name, "publishNotReadyAddresses": True},
            "replicatedJobs": [{"name": "worker", "replicas": 1, "template": {"spec": job}}],
        },
    }
    check_fields(made, kubernetes_fields.JobSet, "JobSet")
    return made


def build_tf_job(request: JobRequest, image: str, pod: PodFields) -> TfJob:
    """Build the TFJob, whose operator sets TF_CONFIG and restarts each failed pod by itself.

    Raises:
        UsageError: a field of `pod` is wrong.
    """
    from stoker.launch.schedulers import kubernetes_fields
    from stoker.launch.schedulers.field_check import check_fields

    container: Container = {
        # The operator looks for a container and a port with these names.
        "name": "tensorflow",
        "image": image,
        "command": ["stoker", *request.build_arguments(TfConfig.name, in_image=True)],
        "ports": [{"name": "tfjob-port", "containerPort": _PORT}],
    }
    spec: PodSpec = {
        "terminationGracePeriodSeconds": int(request.limits.grace_s) + _AFTER_GRACE_S,
        "containers": [container],
    }
    made: TfJob = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": request.job_name},
        "spec": {
            "runPolicy": {"backoffLimit": request.limits.max_restarts, "cleanPodPolicy": "Running"},
            "successPolicy": "AllWorkers",
            "tfReplicaSpecs": {
                "Worker": {
                    "replicas": request.fixed_size,
                    "restartPolicy": "OnFailure",
                    "template": {"spec": merge_pod(spec, pod)},
                }
            },
        },
    }
    check_fields(made, kubernetes_fields.TfJob, "TFJob")
    return made


def merge_pod(spec: PodSpec, pod: PodFields) -> PodSpec:
    """Add the user's fields to ours; lists such as `env` are joined, except for the command.

    Raises:
        UsageError: `pod` does not have exactly one container.
    """
    containers = pod.get("containers", [{}])
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        raise UsageError("--pod: containers must be a list of one, the worker's")
    ours, theirs = cast("PodFields", spec["containers"][0]), containers[0]
    joined = {
        name: ours[name] + theirs[name]
        for name in ours
        if name != "command" and isinstance(ours[name], list) and isinstance(theirs.get(name), list)
    }
    return cast("PodSpec", {**spec, **pod, "containers": [{**ours, **theirs, **joined}]})


def read_pod(text: str | None) -> PodFields:
    """Read `--pod`: JSON, or the name of a file with JSON.

    Raises:
        UsageError: the file cannot be read, or the JSON is not a map.
    """
    if text is None:
        return {}
    try:
        source = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
        fields = json.loads(source)
    except OSError as error:
        raise UsageError(f"--pod: cannot read {text!r}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--pod is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UsageError('--pod must be a map of fields, such as {"nodeSelector": {...}}')
    return fields
