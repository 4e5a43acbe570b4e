"""What is written for SLURM and Kubernetes, and that a misspelt field is refused."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.engines import fields, kubernetes, slurm, yaml_text
from stoker.launch.engines.request import Request
from stoker.launch.engines.schema import check
from stoker.launch.environments import Kubernetes
from stoker.launch.limits import Limits
from tests.launch.support import refused
from tests.support import run

yaml = pytest.importorskip("yaml")

REQUEST = Request(Target("jobs/Train_1.py", ["--epochs", "3"]), 4, Limits(grace_s=90))


def values() -> st.SearchStrategy[Any]:
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.sampled_from(["no", "1e3", "2026-11-16", "~"])
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=40), inner, max_size=3),
        max_leaves=12,
    )


@given(values())
def test_yaml_says_what_the_values_say(value: Any) -> None:
    assert yaml.safe_load(yaml_text.dump(value)) == value


def test_a_job_set_restarts_all_and_does_not_count_preemptions() -> None:
    made = yaml.safe_load(yaml_text.dump(kubernetes.job_set(REQUEST, "registry/image:1", {})))
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
        "--grace",
        "90s",
        "jobs/Train_1.py",
        "--epochs",
        "3",
    ]
    assert container["command"] == words


def test_a_pod_of_the_job_set_finds_its_place() -> None:
    job = kubernetes.job_set(REQUEST, "image", {})["spec"]["replicatedJobs"][0]["template"]["spec"]
    variables = {one["name"]: one.get("value", "") for one in job["template"]["spec"]["containers"][0]["env"]}
    place = Kubernetes(variables | {"JOB_COMPLETION_INDEX": "2"}).place()
    # As JobSet names its pods: set, job, number of the job, number of the pod, and the subdomain.
    assert (place.rank, place.addresses[2]) == (2, "train-1-worker-0-2.train-1:2222")
    assert place.size == 4


def test_a_tf_job_leaves_tf_config_to_its_operator() -> None:
    made = kubernetes.tf_job(REQUEST, "image", {})
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
    job = kubernetes.job_set(REQUEST, "image", more)["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert container["env"][-1] == {"name": "SEED", "value": "7"}
    assert "STOKER_POD_COUNT" in {one["name"] for one in container["env"]}
    assert container["image"] == "image"


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({"nodeSelektor": {}}, "has no field 'nodeSelektor': did you mean nodeSelector?"),
        (
            {"containers": [{"imagePulPolicy": "Always"}]},
            "has no field 'imagePulPolicy': did you mean imagePullPolicy?",
        ),
        ({"hostNetwork": "yes"}, "spec.hostNetwork is 'yes': it must be true or false"),
        ({"terminationGracePeriodSeconds": True}, "is True: it must be a whole number"),
        ({"tolerations": [{"operator": "Is"}]}, "is 'Is': it must be one of Equal, Exists"),
        ({"volumes": [{"nfs": {"server": "a"}}]}, "volumes[0] needs a field 'name'"),
        ({"containers": []}, "--pod: containers must be a list of one, the worker's"),
    ],
)
def test_a_field_that_is_wrong_is_refused_by_its_path(pod: dict[str, Any], said: str) -> None:
    for make in (kubernetes.job_set, kubernetes.tf_job):
        with pytest.raises(UsageError) as error:
            make(REQUEST, "image", pod)
        assert said.replace("volumes[0] needs a field 'name'", "volumes[0]") in str(error.value)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * isinstance(value, dict) + [
        found for key, one in inner for found in paths(one, (*path, key))
    ]


@pytest.mark.parametrize(
    ("made", "schema"),
    [
        (kubernetes.job_set(REQUEST, "image", {}), fields.JOB_SET),
        (kubernetes.tf_job(REQUEST, "image", {}), fields.TF_JOB),
    ],
    ids=["JobSet", "TFJob"],
)
def test_no_field_of_ours_can_be_misspelt(made: dict[str, Any], schema: Any) -> None:
    check(made, schema, "it")
    tried = 0
    for path in paths(made):
        whole = copy.deepcopy(made)
        inner: Any = whole
        for key in path:
            inner = inner[key]
        for name in list(inner):
            inner[f"{name}s"] = inner.pop(name)
            with pytest.raises(UsageError, match="has no field"):
                check(whole, schema, "it")
            inner[name] = inner.pop(f"{name}s")
            tried += 1
    assert tried > 15


def test_a_batch_script_is_valid_and_says_what_to_run(tmp_path: Path) -> None:
    text = slurm.script(REQUEST, ["--partition=gpu"])
    path = tmp_path / "job.sbatch"
    path.write_text(text)
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert "#SBATCH --ntasks=4\n" in text
    assert "#SBATCH --signal=B:TERM@120\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    assert " launch --engine slurm -n 4 --grace 90s jobs/Train_1.py --epochs 3 &" in text


@pytest.mark.parametrize(("code", "requeued"), [(0, False), (75, True), (3, False)])
def test_the_script_queues_a_preempted_job_again(tmp_path: Path, code: int, requeued: bool) -> None:
    """The script itself; in the place of `stoker launch` a program that has SLURM's warning sent to the script."""
    text = slurm.script(REQUEST, [])
    command = next(line for line in text.splitlines() if " -m stoker launch " in line)
    program = f"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
os.kill(os.getppid(), signal.SIGTERM)
signal.pause()
"""
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho $@ > requeued\n")
    (tmp_path / "scontrol").chmod(0o755)
    script = text.replace(command, f"{sys.executable} program.py &")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == code
    assert (tmp_path / "requeued").exists() is requeued


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--write", "x"], "--write: nothing is submitted to local; use --engine slurm or kubernetes"),
        (
            ["--engine", "kubernetes", "--write", "x"],
            "--engine kubernetes needs the container's image: --image registry/name:tag",
        ),
        (
            ["--engine", "kubernetes"],
            "--engine kubernetes runs inside a pod: write what to submit with --write job.yaml, "
            "then kubectl apply -f job.yaml",
        ),
        (
            ["--engine", "slurm", "-n", "2:4", "--write", "x"],
            "-n 2:4: a scheduler gives a fixed number of workers; give one, such as -n 4",
        ),
        (
            ["--engine", "slurm", "--sbatch", "gpu", "--write", "x"],
            "--sbatch 'gpu': give an option of sbatch, such as --sbatch=--partition=gpu",
        ),
        (
            ["--engine", "kubernetes", "--image", "i", "--pod", "{", "--write", "x"],
            "--pod is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (
            ["--engine", "kubernetes", "--image", "i", "--pod", '{"hostNetwrk": true}', "--write", "x"],
            "JobSet.spec.replicatedJobs[0].template.spec.template.spec has no field 'hostNetwrk': "
            "did you mean hostNetwork?",
        ),
    ],
)
def test_what_cannot_be_written_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    assert refused(tmp_path, *words, "train.py") == (2, f"stoker: {said}\n")
    assert not (tmp_path / "x").exists()


def test_the_command_writes_a_manifest(tmp_path: Path) -> None:
    pod = tmp_path / "pod.json"
    pod.write_text(json.dumps({"priorityClassName": "low"}))
    words = [
        "-n",
        "8",
        "--engine",
        "kubernetes",
        "--image",
        "i",
        "--pod",
        "pod.json",
        "--write",
        "job.yaml",
        "-m",
        "a.b",
    ]
    outcome = run([sys.executable, "-m", "stoker", "launch", *words], tmp_path)
    assert (outcome.code, outcome.stderr) == (0, "")
    made = yaml.safe_load((tmp_path / "job.yaml").read_text())
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "low"
    assert spec["containers"][0]["command"][-2:] == ["-m", "a.b"]
