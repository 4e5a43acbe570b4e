"""Kubernetes: a JobSet, or a TFJob for clusters that have only that.

A pod a worker. The cluster starts and restarts them: the JobSet's failure policy ends all pods when one fails, starts
all again up to `--max-restarts` times, and does not count exit code 75 or a drained node. Inside its pod `stoker
launch` works out the worker's place, watches its heartbeat and passes SIGTERM on.
"""

from __future__ import annotations

from typing import Any

from stoker.errors import UsageError
from stoker.launch.engines import fields
from stoker.launch.engines.request import Request
from stoker.launch.engines.schema import check
from stoker.launch.environments.kubernetes import ADDRESS, WORKERS
from stoker.launch.job import JOB, RESTART
from stoker.launch.limits import PREEMPTED

_PORT = 2222
# As JobSet labels its pods.
_RESTARTS = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
# Workers save, then their pod ends.
_AFTER_GRACE_S = 15

Manifest = dict[str, Any]


def job_set(request: Request, image: str, pod: Manifest) -> Manifest:
    """The JobSet; `pod` are fields of the pod's spec beside ours, those of its only container among them.

    Raises:
        UsageError: a field there is not one of a pod.
    """
    name = request.job_name
    environment: list[Manifest] = [
        {"name": WORKERS, "value": str(request.workers)},
        {"name": ADDRESS, "value": f"{name}-worker-0-{{rank}}.{name}:{_PORT}"},
        {"name": JOB, "value": name},
        {"name": RESTART, "valueFrom": {"fieldRef": {"fieldPath": _RESTARTS}}},
    ]
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": int(request.limits.grace_s) + _AFTER_GRACE_S,
        "containers": [_container("worker", "kubernetes", request, image, environment)],
    }
    preempted = [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "worker", "operator": "In", "values": [PREEMPTED]},
        },
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    job = {
        "completionMode": "Indexed",
        "completions": request.workers,
        "parallelism": request.workers,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": preempted},
        "template": {"spec": _merged(spec, pod)},
    }
    uncounted = {
        "name": "preempted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    made = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": {"maxRestarts": request.limits.max_restarts, "rules": [uncounted]},
            "network": {"enableDNSHostnames": True, "subdomain": name, "publishNotReadyAddresses": True},
            "replicatedJobs": [{"name": "worker", "replicas": 1, "template": {"spec": job}}],
        },
    }
    check(made, fields.JOB_SET, "JobSet")
    return made


def tf_job(request: Request, image: str, pod: Manifest) -> Manifest:
    """The TFJob: its operator sets TF_CONFIG, and starts each pod that fails again by itself.

    Raises:
        UsageError: a field of `pod` is not one of a pod.
    """
    spec = {
        "terminationGracePeriodSeconds": int(request.limits.grace_s) + _AFTER_GRACE_S,
        # The operator looks for a container of this name.
        "containers": [_container("tensorflow", "tf-config", request, image, [])],
    }
    worker = {
        "replicas": request.workers,
        "restartPolicy": "OnFailure",
        "template": {"spec": _merged(spec, pod)},
    }
    made = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": request.job_name},
        "spec": {
            "runPolicy": {"backoffLimit": request.limits.max_restarts, "cleanPodPolicy": "Running"},
            "successPolicy": "AllWorkers",
            "tfReplicaSpecs": {"Worker": worker},
        },
    }
    check(made, fields.TF_JOB, "TFJob")
    return made


def _container(name: str, engine: str, request: Request, image: str, environment: list[Manifest]) -> Manifest:
    command = [
        "stoker",
        "launch",
        "--engine",
        engine,
        *request.limit_options(),
        *request.options,
        *request.words,
    ]
    made: Manifest = {"name": name, "image": image, "command": command}
    made["ports"] = [
        {"name": "tfjob-port" if engine == "tf-config" else "tensorflow", "containerPort": _PORT}
    ]
    return made | ({"env": environment} if environment else {})


def _merged(spec: Manifest, pod: Manifest) -> Manifest:
    """Ours and the user's; lists such as `env` are added to."""
    containers = pod.get("containers", [{}])
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        raise UsageError("--pod: containers must be a list of one, the worker's")
    ours = spec["containers"][0]
    theirs = containers[0]
    both = {
        **ours,
        **theirs,
        **{
            name: ours[name] + theirs[name]
            for name in ours
            if name in theirs and isinstance(ours[name], list)
        },
    }
    if "command" in theirs:
        both["command"] = theirs["command"]
    return {**spec, **pod, "containers": [both]}
