"""Workers and replicas. What needs a runtime that has not started runs in a process of its own."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from stoker.tf_internals import distribution
from tests.support import run

_WORKER = """
import json, os, sys
port = sys.argv[1]
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": [f"127.0.0.1:{port}"]}, "task": {"type": "worker", "index": 0}}
)
import tensorflow as tf
from stoker.tf_internals import distribution
distribution.watch_workers({"worker": 1}, "worker", 5000)
class_, name = distribution.joining()
join, joined = getattr(class_, name), []
setattr(class_, name, lambda context, server: joined.append(distribution.has_peers()) or join(context, server))
strategy = tf.distribute.MultiWorkerMirroredStrategy()
distribution.tell_workers("a/key", "a text")
told = {"workers": distribution.rank_and_count(strategy), "heard": distribution.hear_worker("a/key")}
reduced = tf.function(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None))
told["sum"] = float(reduced())
told["peers"] = [*joined, distribution.has_peers()]
distribution.abort_collectives(tf.errors.DEADLINE_EXCEEDED, "took too long")
print(json.dumps(told), flush=True)
os._exit(0)
"""
_COORDINATOR = """
import json, os, sys
worker, server = sys.argv[1:]
cluster = {"worker": [f"127.0.0.1:{worker}"], "ps": [f"127.0.0.1:{server}"]}
import tensorflow as tf
from stoker.tf_internals import distribution
spec = tf.train.ClusterSpec(cluster)
servers = [tf.distribute.Server(spec, job_name=job, task_index=0) for job in cluster]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
coordinator = tf.distribute.coordinator.ClusterCoordinator(tf.distribute.ParameterServerStrategy(resolver))
held = distribution.coordinator_cluster(coordinator)
stopped = []
held.stop = lambda: stopped.append(1)
del coordinator
import gc
gc.collect()
print(json.dumps(stopped), flush=True)
os._exit(0)
"""

_REPLICAS = """
import json
import tensorflow as tf
from stoker.tf_internals import distribution
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
kind, replicas = distribution.replica_thread(), []
original = kind.run
kind.run = lambda thread: (replicas.append(thread.replica_id), original(thread))
strategy.run(lambda: tf.constant(1))
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
specs = distribution.replica_specs(dataset.element_spec)
print(json.dumps({"replicas": sorted(replicas), "specs": [one.shape.rank for one in specs]}))
"""


def free_ports(count: int) -> list[str]:
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(one.getsockname()[1]) for one in listening]
    for one in listening:
        one.close()
    return ports


@pytest.mark.slow
def test_a_worker_of_a_job(tmp_path: Path) -> None:
    """`watch_workers`, `rank_and_count`, `tell_workers`, `hear_worker` and `abort_collectives`."""
    done = run([sys.executable, "-c", _WORKER, *free_ports(1)], tmp_path)
    assert json.loads(done.stdout) == {
        "workers": [0, 1],
        "heard": "a text",
        "sum": 2.0,
        "peers": [False, False],
    }, done.stderr


@pytest.mark.slow
def test_coordinator_cluster_is_what_the_destructor_stops(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", _COORDINATOR, *free_ports(2)], tmp_path)
    assert json.loads(done.stdout) == [1], done.stderr


@pytest.mark.slow
def test_two_replicas(tmp_path: Path) -> None:
    """`replica_thread` and `replica_specs`."""
    done = run([sys.executable, "-c", _REPLICAS], tmp_path)
    assert json.loads(done.stdout) == {"replicas": [0, 1], "specs": [1, 1]}, done.stderr
    assert distribution.replica_specs(tf.TensorSpec([1])) is None


def test_collective_options_merge() -> None:
    kind = distribution.collective_options()
    implementations = tf.distribute.experimental.CommunicationImplementation
    first = tf.distribute.experimental.CommunicationOptions(implementation=implementations.NCCL)
    assert isinstance(first, kind)
    merged = first.merge(tf.distribute.experimental.CommunicationOptions(bytes_per_pack=7))
    assert (merged.implementation, merged.bytes_per_pack) == (implementations.NCCL, 7)
