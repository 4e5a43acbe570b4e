"""`stoker.strategy()`: the strategy that fits the environment in which the program was started.

strategy = stoker.strategy()
with strategy.scope():
    model = ...
    model.compile(...)
stoker.fit(model, x, y, batch_size=256)     # of all workers and devices together
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

import tensorflow as tf

from stoker.errors import ArgumentError, UnavailableError
from stoker.goodput import accounts, journal
from stoker.tf_internals.distribution import watch_workers
from stoker.tf_internals.types import Strategy
from stoker.train.workers import patience

_JOBS = ("chief", "worker")
_made: dict[str, Strategy] = {}


def strategy(*, timeout: float = patience.DEFAULT_S, heartbeat: float = 10.0) -> Strategy:
    """Return the `tf.distribute` strategy for this process; the same object at every call.

    With `TF_CONFIG` in the environment, which `stoker launch` and most schedulers set, this process is a worker of a
    job and gets a `MultiWorkerMirroredStrategy`. Otherwise several GPUs get a `MirroredStrategy`, and a single device
    gets TensorFlow's default. Call this before TensorFlow computes anything: only then can workers find each other.

    If `TF_CONFIG` names parameter servers (`ps`), the `chief` gets a `ParameterServerStrategy`. All other processes
    serve it until they are stopped: in them, this call does not return.

    Args:
        timeout: seconds that workers wait for each other before they give up with an error.
        heartbeat: seconds without a heartbeat after which a worker counts as lost and the others end.

    Raises:
        ArgumentError: TF_CONFIG is invalid, or the call comes too late.
    """
    given = os.environ.get("TF_CONFIG", "")
    if given not in _made:
        _made[given] = _make(given, timeout, heartbeat)
    return _made[given]


def check_strategy(strategies: Iterable[Strategy | None]) -> None:
    """Refuse to train a model that belongs to no strategy in a process that is one of several workers.

    Every worker would train the whole model alone.

    Args:
        strategies: the strategies under whose scope the models were made; None for a model made under none.

    Raises:
        ArgumentError: the message says what to do, even if separate training is intended.
    """
    if all(one is not None for one in strategies):
        return
    cluster, job, index = _read(os.environ.get("TF_CONFIG", ""))
    workers = [name for name in _JOBS for _ in cluster.get(name, ())]
    if len(workers) < 2 or "ps" in cluster:
        return
    raise ArgumentError(
        f"this is worker {workers.index(job) + index} of {len(workers)}, and each of them would train the whole model: "
        "make and compile it under `with stoker.strategy().scope():`, so that they train it together "
        "(or delete TF_CONFIG from os.environ if each is to train a model of its own)"
    )


def _make(given: str, timeout: float, heartbeat: float) -> Strategy:
    cluster, task, index = _read(given)
    if "ps" in cluster:
        return _make_for_servers(task)
    if cluster:
        return _make_for_workers(cluster, task, index, timeout, heartbeat)
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def _read(given: str) -> tuple[dict[str, list[str]], str, int]:
    """Return the cluster, this process's job in it, and its number in that job."""
    if not given.strip():
        return {}, "", 0
    try:
        config = json.loads(given)
        cluster = dict(config.get("cluster") or {})
        task = config.get("task") or {}
        job, index = str(task.get("type", "worker")), int(task.get("index", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise ArgumentError(f"TF_CONFIG={given!r} is not what TensorFlow writes there ({error})") from None
    if cluster and (job not in cluster or not 0 <= index < len(cluster[job])):
        raise ArgumentError(f"TF_CONFIG: there is no task {index} of {job!r} in the cluster {cluster}")
    return cluster, job, index


def _make_for_servers(job: str) -> Strategy:
    """Return the strategy, on the coordinator. Servers and workers do what it says, and never return."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if job == "chief":
        return tf.distribute.ParameterServerStrategy(resolver)
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc",
        start=True,
    )
    server.join()
    raise SystemExit(0)


def _make_for_workers(
    cluster: dict[str, list[str]], job: str, index: int, timeout: float, heartbeat: float
) -> Strategy:
    _watch_for_lost_workers(cluster, heartbeat)
    try:
        with journal.phase(accounts.PEERS):
            made = tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        if "must be configured at program startup" not in str(error):
            raise
        raise ArgumentError(
            "stoker.strategy() was called too late: TensorFlow has already run something. Call it first in the program"
        ) from error
    except tf.errors.UnknownError as error:
        if "Could not start gRPC server" not in str(error):
            raise
        raise UnavailableError(
            f"TF_CONFIG: this worker cannot listen on {cluster[job][index]}: the port is in use by another process"
        ) from error
    patience.ask(made, timeout)
    return made


def _watch_for_lost_workers(cluster: dict[str, list[str]], heartbeat: float) -> None:
    """Set up what the strategy would, but with our own heartbeat."""
    tasks = {name: len(cluster[name]) for name in _JOBS if name in cluster}
    watch_workers(tasks, "chief" if "chief" in cluster else "worker", int(heartbeat * 1000))
