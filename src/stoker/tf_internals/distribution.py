"""Workers and replicas of a strategy: their numbers, what they exchange, and how to end a wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import Strategy, TensorSpec


def replica_thread() -> Any:
    """Return the class of the threads in which a strategy runs each replica: `replica_id`, `run()`."""
    from tensorflow.python.distribute import mirrored_run

    return mirrored_run._MirroredReplicaThread


def replica_specs(spec: TensorSpec) -> list[TensorSpec] | None:
    """Return the spec of each replica, from the spec of a distributed leaf; None if the leaf is not distributed."""
    from tensorflow.python.distribute.values import PerReplicaSpec

    return list(spec._value_specs) if isinstance(spec, PerReplicaSpec) else None


def collective_options() -> Any:
    """Return the class of a strategy's options for collectives, with `merge`.

    The public name makes instances of this class.
    """
    from tensorflow.python.distribute import collective_util

    return collective_util.Options


def rank_and_count(strategy: Strategy) -> tuple[int, int]:
    """Return this worker's number under a `MultiWorkerMirroredStrategy`, and the number of workers.

    A cluster resolver returns only what `TF_CONFIG` has, and not in the order of the replicas.
    """
    extended = strategy.extended
    return int(extended._id_in_cluster), int(extended._num_workers)


def coordinator_cluster(coordinator: Any) -> Any:
    """Return the object that a `ClusterCoordinator` stops in its destructor, by `stop()`."""
    return coordinator._cluster


def watch_workers(tasks: Mapping[str, int], leader: str, heartbeat_ms: int) -> None:
    """Count workers as lost after this long without a heartbeat. Call this before TensorFlow has started.

    Args:
        tasks: the number of tasks of each job.
        leader: the job whose first task the others report to.
        heartbeat_ms: the time without a heartbeat, in milliseconds.
    """
    # The module of this message moves in every other version of TensorFlow; this module always imports it.
    from tensorflow.python.distribute.collective_all_reduce_strategy import coordination_config_pb2
    from tensorflow.python.eager import context

    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=f"/job:{leader}/replica:0/task:0",
        heartbeat_timeout_in_ms=heartbeat_ms,
        coordinated_jobs=[
            coordination_config_pb2.CoordinatedJob(name=name, num_tasks=count)
            for name, count in tasks.items()
        ],
    )


def joining() -> Place:
    """Return the method by which a process joins the workers that its collectives exchange values with."""
    from tensorflow.python.eager import context

    return context.Context, "enable_collective_ops"


def has_peers() -> bool:
    """Return whether the collectives of this process exchange values with other processes. Asking starts nothing."""
    from tensorflow.python.eager import context

    made = context.context_safe()
    server = None if made is None else made._collective_ops_server_def
    return server is not None and sum(len(job.tasks) for job in server.cluster.job) > 1


def abort_collectives(code: int, reason: str) -> None:
    """End every collective that waits for another worker, now or later, with an error of this code."""
    from tensorflow.python.eager import context

    context.context().abort_collective_ops(code, reason)


def tell_workers(key: str, text: str) -> None:
    """Publish a text to all workers, once for each key."""
    from tensorflow.python.eager import context

    context.context().set_config_key_value(key, text)


def hear_worker(key: str) -> str:
    """Wait for the text that another worker publishes."""
    from tensorflow.python.eager import context

    return str(context.context().get_config_key_value(key))
