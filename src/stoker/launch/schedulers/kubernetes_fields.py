"""The fields of a JobSet, a TFJob and a pod, as their APIs define them.

A pod has every field that a training job is likely to need. Deeper structures (affinity, probes) are accepted as given.
"""

# Annotations are evaluated here: `Required` inside a string would go unnoticed.
from typing import Literal

from typing_extensions import Required, TypedDict


class ObjectMetadata(TypedDict, total=False):
    name: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]


class FieldRef(TypedDict, total=False):
    fieldPath: Required[str]
    apiVersion: str


class ResourceRef(TypedDict, total=False):
    resource: Required[str]
    containerName: str
    divisor: str


class KeyRef(TypedDict, total=False):
    key: Required[str]
    name: str
    optional: bool


class PodVariableSource(TypedDict, total=False):
    fieldRef: FieldRef
    resourceFieldRef: ResourceRef
    secretKeyRef: KeyRef
    configMapKeyRef: KeyRef


class PodVariable(TypedDict, total=False):
    name: Required[str]
    value: str
    valueFrom: PodVariableSource


class ObjectRef(TypedDict, total=False):
    name: Required[str]
    optional: bool


class PodVariablesSource(TypedDict, total=False):
    prefix: str
    configMapRef: ObjectRef
    secretRef: ObjectRef


class ContainerPort(TypedDict, total=False):
    containerPort: Required[int]
    name: str
    hostPort: int
    protocol: Literal["TCP", "UDP", "SCTP"]


class ContainerResources(TypedDict, total=False):
    limits: dict[str, str]
    requests: dict[str, str]


class VolumeMount(TypedDict, total=False):
    name: Required[str]
    mountPath: Required[str]
    subPath: str
    readOnly: bool
    mountPropagation: str


class Container(TypedDict, total=False):
    name: Required[str]
    image: Required[str]
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"]
    command: list[str]
    args: list[str]
    workingDir: str
    env: list[PodVariable]
    envFrom: list[PodVariablesSource]
    ports: list[ContainerPort]
    resources: ContainerResources
    volumeMounts: list[VolumeMount]
    securityContext: object
    livenessProbe: object
    readinessProbe: object
    startupProbe: object
    lifecycle: object
    tty: bool
    stdin: bool


class PullSecret(TypedDict):
    name: str


class Toleration(TypedDict, total=False):
    key: str
    operator: Literal["Exists", "Equal"]
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    tolerationSeconds: int


class VolumeClaim(TypedDict, total=False):
    claimName: Required[str]
    readOnly: bool


class EmptyDirectory(TypedDict, total=False):
    medium: str
    sizeLimit: str


class HostPath(TypedDict, total=False):
    path: Required[str]
    type: str


class NfsVolume(TypedDict, total=False):
    server: Required[str]
    path: Required[str]
    readOnly: bool


class PodVolume(TypedDict, total=False):
    name: Required[str]
    persistentVolumeClaim: VolumeClaim
    emptyDir: EmptyDirectory
    hostPath: HostPath
    nfs: NfsVolume
    configMap: object
    secret: object
    csi: object
    ephemeral: object
    projected: object


class PodSpec(TypedDict, total=False):
    containers: Required[list[Container]]
    initContainers: list[Container]
    restartPolicy: Literal["Always", "OnFailure", "Never"]
    terminationGracePeriodSeconds: int
    activeDeadlineSeconds: int
    nodeSelector: dict[str, str]
    nodeName: str
    schedulerName: str
    priorityClassName: str
    runtimeClassName: str
    serviceAccountName: str
    automountServiceAccountToken: bool
    imagePullSecrets: list[PullSecret]
    tolerations: list[Toleration]
    affinity: object
    topologySpreadConstraints: list[object]
    volumes: list[PodVolume]
    securityContext: object
    hostNetwork: bool
    hostIPC: bool
    shareProcessNamespace: bool
    dnsPolicy: str
    subdomain: str
    hostname: str


class PodTemplate(TypedDict, total=False):
    spec: Required[PodSpec]
    metadata: ObjectMetadata


class ExitCodes(TypedDict, total=False):
    operator: Required[Literal["In", "NotIn"]]
    values: Required[list[int]]
    containerName: str


class PodCondition(TypedDict):
    type: str
    status: Literal["True", "False", "Unknown"]


class PodFailureRule(TypedDict, total=False):
    action: Required[Literal["FailJob", "FailIndex", "Ignore", "Count"]]
    onExitCodes: ExitCodes
    onPodConditions: list[PodCondition]


class PodFailurePolicy(TypedDict):
    rules: list[PodFailureRule]


class IndexedJobSpec(TypedDict, total=False):
    template: Required[PodTemplate]
    completionMode: Literal["Indexed", "NonIndexed"]
    completions: int
    parallelism: int
    backoffLimit: int
    activeDeadlineSeconds: int
    podFailurePolicy: PodFailurePolicy


class JobTemplate(TypedDict, total=False):
    spec: Required[IndexedJobSpec]
    metadata: ObjectMetadata


class FailureRule(TypedDict, total=False):
    name: Required[str]
    action: Required[Literal["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"]]
    onJobFailureReasons: list[
        Literal[
            "BackoffLimitExceeded",
            "DeadlineExceeded",
            "FailedIndexes",
            "MaxFailedIndexesExceeded",
            "PodFailurePolicy",
        ]
    ]
    targetReplicatedJobs: list[str]


class FailurePolicy(TypedDict, total=False):
    maxRestarts: int
    rules: list[FailureRule]


class JobSetNetwork(TypedDict, total=False):
    enableDNSHostnames: bool
    subdomain: str
    publishNotReadyAddresses: bool


class ReplicatedJob(TypedDict, total=False):
    name: Required[str]
    template: Required[JobTemplate]
    replicas: int


class JobSetSpec(TypedDict, total=False):
    replicatedJobs: Required[list[ReplicatedJob]]
    failurePolicy: FailurePolicy
    network: JobSetNetwork
    suspend: bool
    ttlSecondsAfterFinished: int


class JobSet(TypedDict):
    apiVersion: Literal["jobset.x-k8s.io/v1alpha2"]
    kind: Literal["JobSet"]
    metadata: ObjectMetadata
    spec: JobSetSpec


class RunPolicy(TypedDict, total=False):
    backoffLimit: int
    activeDeadlineSeconds: int
    cleanPodPolicy: Literal["All", "Running", "None"]
    ttlSecondsAfterFinished: int
    suspend: bool


class TfReplica(TypedDict, total=False):
    template: Required[PodTemplate]
    replicas: int
    restartPolicy: Literal["Always", "OnFailure", "Never", "ExitCode"]


class TfReplicas(TypedDict, total=False):
    Worker: TfReplica
    Chief: TfReplica
    Master: TfReplica
    PS: TfReplica
    Evaluator: TfReplica


class TfJobSpec(TypedDict, total=False):
    tfReplicaSpecs: Required[TfReplicas]
    runPolicy: RunPolicy
    enableDynamicWorker: bool
    successPolicy: Literal["", "AllWorkers"]


class TfJob(TypedDict):
    apiVersion: Literal["kubeflow.org/v1"]
    kind: Literal["TFJob"]
    metadata: ObjectMetadata
    spec: TfJobSpec
