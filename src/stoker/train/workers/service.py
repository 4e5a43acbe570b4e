"""Input that other machines prepare: a pipeline run by tf.data service, of which each worker takes what comes.

    dispatcher = tf.data.experimental.service.DispatchServer()      # and WorkerServers, on machines of their own
    stoker.fit(model, batches, data_service=dispatcher.target)

Its servers hand every batch to exactly one worker, whichever asks first: rows come in no order, an epoch is over for
all when it is for one, and the place in it cannot be saved. A server that is lost takes rows with it.
"""

from __future__ import annotations

import re
import socket
import uuid

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Data
from stoker.train.workers.group import Group
from stoker.train.workers.shares import Share, own_size, size_of_batch

# A dispatcher that takes longer to accept a connection is not there.
_ANSWERS_S = 10.0


def served(
    x: Data, y: Data, sample_weight: Data, address: object, group: Group, *, checkpoint: bool
) -> Share:
    """This worker's part of the batches that the service makes of the pipeline `x`.

    Raises:
        ArgumentError: it is no pipeline, nobody listens there, or what else is asked for cannot be had.
    """
    target = _target(address)
    if not isinstance(x, tf.data.Dataset):
        raise ArgumentError(f"data_service= runs a tf.data.Dataset, not {type(x).__name__}")
    if checkpoint:
        raise ArgumentError(
            "data_service= cannot be used with checkpoint=: the place in what a service hands out cannot be saved"
        )
    _reached(target)
    # Each call of fit is a job of its own there, and all workers of ours take part in the same one.
    name = str(group.told(lambda: f"stoker-{uuid.uuid4().hex}"))
    own = x if group.alone else x.rebatch(own_size(size_of_batch(x, "data_service="), group))
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    spread = tf.data.experimental.service.distribute(
        processing_mode=policy, service=target, job_name=name, max_outstanding_requests=_AHEAD
    )
    return Share(own.apply(spread), y, sample_weight, None, apart=True, again=False)


# Batches asked for ahead: what one worker holds when another is out is not trained on in that epoch.
_AHEAD = 2


def _target(address: object) -> str:
    match = (
        re.fullmatch(r"(?:(\w+)://)?([^/\s:]+|\[[^\]\s]+\]):(\d+)", address)
        if isinstance(address, str)
        else None
    )
    if match is None:
        raise ArgumentError(
            f"data_service={address!r}: give the dispatcher's address, such as 'grpc://host:5050'"
        )
    return f"{match[1] or 'grpc'}://{match[2]}:{match[3]}"


def _reached(target: str) -> None:
    """Who asks a service that is not there would wait for ever."""
    host, _, port = target.partition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_S):
            pass
    except (OSError, OverflowError) as error:
        raise ArgumentError(f"data_service={target!r}: no dispatcher answers there ({error})") from None
