"""The fields of a JobSet, a TFJob and a pod that a job may have, after the APIs' own definitions.

Of a pod everything a training job is likely to need; what is deeper than that (affinity, probes) is taken as it is.
"""

from __future__ import annotations

from stoker.launch.engines.schema import Schema

_TEXTS: Schema = [str]
_MAP: Schema = {str: str}
_NAMED: Schema = {"name!": str, "optional": bool}

_METADATA: Schema = {"name": str, "namespace": str, "labels": _MAP, "annotations": _MAP}

_ENV: Schema = {
    "name!": str,
    "value": str,
    "valueFrom": {
        "fieldRef": {"apiVersion": str, "fieldPath!": str},
        "resourceFieldRef": {"containerName": str, "resource!": str, "divisor": str},
        "secretKeyRef": {"name": str, "key!": str, "optional": bool},
        "configMapKeyRef": {"name": str, "key!": str, "optional": bool},
    },
}

_CONTAINER: Schema = {
    "name!": str,
    "image!": str,
    "imagePullPolicy": frozenset({"Always", "IfNotPresent", "Never"}),
    "command": _TEXTS,
    "args": _TEXTS,
    "workingDir": str,
    "env": [_ENV],
    "envFrom": [{"prefix": str, "configMapRef": _NAMED, "secretRef": _NAMED}],
    "ports": [
        {"name": str, "containerPort!": int, "hostPort": int, "protocol": frozenset({"TCP", "UDP", "SCTP"})}
    ],
    "resources": {"limits": _MAP, "requests": _MAP},
    "volumeMounts": [
        {"name!": str, "mountPath!": str, "subPath": str, "readOnly": bool, "mountPropagation": str}
    ],
    "securityContext": object,
    "livenessProbe": object,
    "readinessProbe": object,
    "startupProbe": object,
    "lifecycle": object,
    "tty": bool,
    "stdin": bool,
}

_POD: Schema = {
    "containers!": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "restartPolicy": frozenset({"Always", "OnFailure", "Never"}),
    "terminationGracePeriodSeconds": int,
    "activeDeadlineSeconds": int,
    "nodeSelector": _MAP,
    "nodeName": str,
    "schedulerName": str,
    "priorityClassName": str,
    "runtimeClassName": str,
    "serviceAccountName": str,
    "automountServiceAccountToken": bool,
    "imagePullSecrets": [{"name!": str}],
    "tolerations": [
        {
            "key": str,
            "operator": frozenset({"Exists", "Equal"}),
            "value": str,
            "effect": frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"}),
            "tolerationSeconds": int,
        }
    ],
    "affinity": object,
    "topologySpreadConstraints": [object],
    "volumes": [
        {
            "name!": str,
            "persistentVolumeClaim": {"claimName!": str, "readOnly": bool},
            "emptyDir": {"medium": str, "sizeLimit": str},
            "hostPath": {"path!": str, "type": str},
            "nfs": {"server!": str, "path!": str, "readOnly": bool},
            "configMap": object,
            "secret": object,
            "csi": object,
            "ephemeral": object,
            "projected": object,
        }
    ],
    "securityContext": object,
    "hostNetwork": bool,
    "hostIPC": bool,
    "shareProcessNamespace": bool,
    "dnsPolicy": str,
    "subdomain": str,
    "hostname": str,
}

_POD_TEMPLATE: Schema = {"metadata": _METADATA, "spec!": _POD}

_POD_FAILURES: Schema = {
    "rules!": [
        {
            "action!": frozenset({"FailJob", "FailIndex", "Ignore", "Count"}),
            "onExitCodes": {"containerName": str, "operator!": frozenset({"In", "NotIn"}), "values!": [int]},
            "onPodConditions": [{"type!": str, "status!": frozenset({"True", "False", "Unknown"})}],
        }
    ]
}

_JOB: Schema = {
    "completionMode": frozenset({"Indexed", "NonIndexed"}),
    "completions": int,
    "parallelism": int,
    "backoffLimit": int,
    "activeDeadlineSeconds": int,
    "podFailurePolicy": _POD_FAILURES,
    "template!": _POD_TEMPLATE,
}

JOB_SET: Schema = {
    "apiVersion!": frozenset({"jobset.x-k8s.io/v1alpha2"}),
    "kind!": frozenset({"JobSet"}),
    "metadata!": _METADATA,
    "spec!": {
        "failurePolicy": {
            "maxRestarts": int,
            "rules": [
                {
                    "name!": str,
                    "action!": frozenset(
                        {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"}
                    ),
                    "onJobFailureReasons": [
                        frozenset(
                            {
                                "BackoffLimitExceeded",
                                "DeadlineExceeded",
                                "FailedIndexes",
                                "MaxFailedIndexesExceeded",
                                "PodFailurePolicy",
                            }
                        )
                    ],
                    "targetReplicatedJobs": _TEXTS,
                }
            ],
        },
        "network": {"enableDNSHostnames": bool, "subdomain": str, "publishNotReadyAddresses": bool},
        "suspend": bool,
        "ttlSecondsAfterFinished": int,
        "replicatedJobs!": [
            {"name!": str, "replicas": int, "template!": {"metadata": _METADATA, "spec!": _JOB}}
        ],
    },
}

_REPLICA: Schema = {
    "replicas": int,
    "restartPolicy": frozenset({"Always", "OnFailure", "Never", "ExitCode"}),
    "template!": _POD_TEMPLATE,
}

TF_JOB: Schema = {
    "apiVersion!": frozenset({"kubeflow.org/v1"}),
    "kind!": frozenset({"TFJob"}),
    "metadata!": _METADATA,
    "spec!": {
        "runPolicy": {
            "backoffLimit": int,
            "activeDeadlineSeconds": int,
            "cleanPodPolicy": frozenset({"All", "Running", "None"}),
            "ttlSecondsAfterFinished": int,
            "suspend": bool,
        },
        "enableDynamicWorker": bool,
        "successPolicy": frozenset({"", "AllWorkers"}),
        "tfReplicaSpecs!": {
            "Worker": _REPLICA,
            "Chief": _REPLICA,
            "Master": _REPLICA,
            "PS": _REPLICA,
            "Evaluator": _REPLICA,
        },
    },
}
