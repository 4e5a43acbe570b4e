"""What is written for Kubernetes, and that a misspelt field is refused."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.hosts import JobSize
from stoker.launch.limits import LaunchLimits
from stoker.launch.request import JobRequest
from stoker.launch.schedulers import Kubernetes, kubernetes_fields
from stoker.launch.schedulers.field_check import check_fields
from stoker.launch.schedulers.kubernetes import build_job_set, build_tf_job

yaml = pytest.importorskip("yaml")

REQUEST = JobRequest(
    Target("jobs/Train_1.py", ["--epochs", "3"]), LaunchLimits(grace_s=90), JobSize(4, 4), ledger=True
)


def build_pod(pod: dict[str, Any] | None = None) -> dict[str, Any]:
    """The pod's spec of a JobSet."""
    job = build_job_set(REQUEST, "image", pod or {})["spec"]["replicatedJobs"][0]["template"]["spec"]
    return dict(job["template"]["spec"])


@settings(deadline=None)
@given(st.text())
def test_any_value_survives_yaml(value: str) -> None:
    pod = {"containers": [{"env": [{"name": "VALUE", "value": value}]}]}
    text = Kubernetes({}, "image", pod).build_submission(REQUEST)
    job = yaml.safe_load(text)["spec"]["replicatedJobs"][0]["template"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert container["env"][-1] == {"name": "VALUE", "value": value}


@pytest.mark.parametrize("value", ["no", "1e3", "2026-11-16", "~", ""])
def test_a_string_stays_a_string_in_yaml(value: str) -> None:
    text = Kubernetes({}, "image", {"nodeSelector": {"zone": value}}).build_submission(REQUEST)
    job = yaml.safe_load(text)["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert job["template"]["spec"]["nodeSelector"] == {"zone": value}


def test_without_pyyaml_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UsageError) as error:
        Kubernetes({}, "image").build_submission(REQUEST)
    assert str(error.value) == "writing a manifest needs PyYAML: pip install 'stoker[kubernetes]'"


def test_a_job_set_restarts_all_and_does_not_count_preemptions() -> None:
    made = yaml.safe_load(Kubernetes({}, "registry/image:1").build_submission(REQUEST))
    assert (made["apiVersion"], made["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert made["metadata"]["name"] == "train-1"
    assert made["spec"]["failurePolicy"]["maxRestarts"] == 3
    job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (4, 4, 0)
    assert job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [75]
    pod = job["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 90
    (container,) = pod["containers"]
    words = [
        "stoker",
        "launch",
        "--engine",
        "kubernetes",
        "--ledger",
        "--grace",
        "90s",
        "jobs/Train_1.py",
        "--epochs",
        "3",
    ]
    assert container["command"] == words


def test_a_pod_of_the_job_set_finds_its_place() -> None:
    variables = {one["name"]: one.get("value", "") for one in build_pod()["containers"][0]["env"]}
    place = Kubernetes(variables | {"JOB_COMPLETION_INDEX": "2"}).find_place()
    # JobSet names its pods by set, job, number of the job and number of the pod; then comes the subdomain.
    assert (place.rank, place.addresses[2]) == (2, "train-1-worker-0-2.train-1:2222")
    assert place.size == 4


def test_a_tf_job_leaves_tf_config_to_its_operator() -> None:
    made = build_tf_job(REQUEST, "image", {})
    worker = made["spec"]["tfReplicaSpecs"]["Worker"]
    (container,) = worker["template"]["spec"]["containers"]
    assert (worker["replicas"], container["name"]) == (4, "tensorflow")
    assert container["command"][:4] == ["stoker", "launch", "--engine", "tf-config"]


def test_fields_of_the_pod_are_added_to_ours() -> None:
    more = {
        "nodeSelector": {"pool": "gpu"},
        "containers": [
            {"env": [{"name": "SEED", "value": "7"}], "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        ],
    }
    pod = build_pod(more)
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert container["env"][-1] == {"name": "SEED", "value": "7"}
    assert "STOKER_POD_COUNT" in {one["name"] for one in container["env"]}
    assert container["image"] == "image"


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({"nodeSelektor": {}}, "has no field 'nodeSelektor': did you mean 'nodeSelector'?"),
        (
            {"containers": [{"imagePulPolicy": "Always"}]},
            "has no field 'imagePulPolicy': did you mean 'imagePullPolicy'?",
        ),
        ({"hostNetwork": "yes"}, "spec.hostNetwork must be true or false, not 'yes'"),
        ({"terminationGracePeriodSeconds": True}, "must be a whole number, not True"),
        ({"tolerations": [{"operator": "Is"}]}, "must be one of Equal, Exists, not 'Is'"),
        ({"volumes": [{"nfs": {"server": "a"}}]}, "volumes[0] needs a field 'name'"),
        ({"containers": []}, "--pod: containers must be a list of one, the worker's"),
        ({"containers": [{"env": {"SEED": "7"}}]}, "containers[0].env must be a list, not {'SEED': '7'}"),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(pod: dict[str, Any], said: str) -> None:
    for build in (build_job_set, build_tf_job):
        with pytest.raises(UsageError) as error:
            build(REQUEST, "image", pod)
        assert said.replace("volumes[0] needs a field 'name'", "volumes[0]") in str(error.value)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * isinstance(value, dict) + [
        found for key, one in inner for found in paths(one, (*path, key))
    ]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (build_job_set(REQUEST, "image", {}), kubernetes_fields.JobSet),
        (build_tf_job(REQUEST, "image", {}), kubernetes_fields.TfJob),
    ],
    ids=["JobSet", "TFJob"],
)
def test_no_field_of_ours_can_be_misspelt(made: dict[str, Any], kind: Any) -> None:
    check_fields(made, kind, "it")
    tried = 0
    for path in paths(made):
        whole = copy.deepcopy(made)
        inner: Any = whole
        for key in path:
            inner = inner[key]
        for name in list(inner):
            inner[f"{name}s"] = inner.pop(name)
            with pytest.raises(UsageError, match="has no field"):
                check_fields(whole, kind, "it")
            inner[name] = inner.pop(f"{name}s")
            tried += 1
    assert tried > 15
