"""Which rows a worker reads, depending on `divide=`.

| | each worker reads | a step's rows |
|---|---|---|
| share | all of the data, and takes its share of each batch | those of one process |
| share, of a `stoker.data` reader | its share of each batch alone | those of one process |
| rows | every n-th row of arrays; its share of the batches of a pipeline | its own rows in its own order |
| files | every n-th file of a pipeline | rows of its own files |
| (`service`) | what a tf.data service hands out | rows that come when they are ready |

If workers read different rows, the one with the fewest ends the epoch for all.
"""

from __future__ import annotations

import re
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from stoker.errors import ArgumentError, UnavailableError, first_line
from stoker.tf_internals.pipelines import batch_size_of, shard_by_files
from stoker.tf_internals.types import Data, Dataset, Nest, Tensor
from stoker.train.execution.feeding.sources import validation_parts
from stoker.train.execution.feeding.streamed import is_distributed, replicas_of
from stoker.train.workers.group import Group
from stoker.units import quantity

WAYS = ("share", "rows", "files")


@dataclass(frozen=True)
class Share:
    """The data that one worker reads.

    apart: whether its batches are its own, rather than those of all workers.
    again: whether the place in the batches can be found by counting, whatever the number of workers.
    """

    x: Data
    y: Data
    sample_weight: Data
    batch_size: int | None
    apart: bool = False
    again: bool = True


def divide_data(
    x: Data, y: Data, sample_weight: Data, batch_size: int | None, divide: str, group: Group
) -> Share:
    """Return this worker's part of the training data.

    Raises:
        ArgumentError: the data cannot be divided this way.
    """
    if divide not in WAYS:
        raise ArgumentError(f"divide={divide!r} is not one of {', '.join(map(repr, WAYS))}")
    whole = Share(x, y, sample_weight, batch_size)
    if group.alone:
        return whole
    pipeline = isinstance(x, tf.data.Dataset)
    if divide == "files":
        if not pipeline:
            raise ArgumentError(f"divide='files' needs a tf.data.Dataset of files, not {type(x).__name__}")
        return Share(_take_files(x, group), y, sample_weight, batch_size, apart=True, again=False)
    own = x.for_worker(group.rank, group.count) if hasattr(x, "for_worker") else None
    if own is not None:
        return Share(own, y, sample_weight, batch_size, apart=True)
    if divide == "share":
        return whole
    if pipeline:
        own = x.map(lambda *batch: _slice(batch, group), num_parallel_calls=tf.data.AUTOTUNE)
        return Share(own, y, sample_weight, batch_size, apart=True, again=False)
    return _take_rows(whole, group)


def _take_rows(whole: Share, group: Group) -> Share:
    def own(leaf: Tensor) -> Nest:
        return None if leaf is None else leaf[group.rank :: group.count]

    try:
        x, y, weights = keras.tree.map_structure(own, (whole.x, whole.y, whole.sample_weight))
    except (TypeError, KeyError) as error:
        kind = type(whole.x).__name__
        raise ArgumentError(f"divide='rows' needs arrays or a tf.data.Dataset, not {kind}") from error
    return Share(x, y, weights, own_size(whole.batch_size or 32, group), apart=True, again=False)


def _take_files(dataset: Dataset, group: Group) -> Dataset:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
    try:
        own = shard_by_files(dataset.with_options(options), group.count, group.rank)
    except tf.errors.OpError as error:
        reason = first_line(str(error.message) or error)[:160]
        raise ArgumentError(
            f"divide='files': the pipeline cannot be divided by its files ({reason})"
        ) from error
    return own.rebatch(own_size(size_of_batch(dataset, "divide='files'"), group))


def size_of_batch(dataset: Dataset, option: str) -> int:
    """Return the number of rows in a batch, as the pipeline tells it or as its first batch has it."""
    size = batch_size_of(dataset)
    if size > 0:
        return size
    first = next(iter(dataset.take(1)), None)
    if first is None:
        raise ArgumentError(f"{option}: the dataset is empty")
    return int(tf.nest.flatten(first)[0].shape[0])


def own_size(batch_size: int, group: Group) -> int:
    """Return the size of this worker's part of a batch. All parts together are the batch."""
    size = batch_size * (group.rank + 1) // group.count - batch_size * group.rank // group.count
    if size == 0:
        raise ArgumentError(
            f"a batch of {quantity(batch_size, 'row')} leaves worker {group.rank} of {group.count} without rows"
        )
    return size


def _slice(batch: Nest, group: Group) -> Nest:
    parts = batch if len(batch) > 1 else batch[0]
    rows = tf.shape(tf.nest.flatten(parts)[0])[0]
    start, stop = rows * group.rank // group.count, rows * (group.rank + 1) // group.count
    return tf.nest.map_structure(lambda leaf: leaf[start:stop], parts)


def check_distributed(x: Data, validation_data: Data, options: Mapping[str, object], group: Group) -> None:
    """Refuse arguments that do not work with a distributed dataset.

    Args:
        x: the training data.
        validation_data: as `fit` takes it.
        options: arguments of `fit`, by name, that need the pipeline itself; None if not given.
        group: the workers and replicas of the model's strategy.

    Raises:
        ArgumentError: the line says what to do instead.
    """
    held_out = None if validation_data is None else validation_parts(validation_data)[0]
    for name, data in (("x", x), ("validation_data", held_out)):
        if is_distributed(data):
            _check_replicas(name, replicas_of(data), group)
    given = [name for name, value in options.items() if value is not None]
    if is_distributed(x) and given:
        raise ArgumentError(
            f"{given[0]}= cannot be used with a distributed dataset: pass the tf.data.Dataset itself, "
            "stoker divides its batches among the replicas"
        )


def _check_replicas(name: str, replicas: int, group: Group) -> None:
    if not group.alone:
        raise ArgumentError(
            f"{name} is a distributed dataset, which a job of {group.count} workers cannot train on: pass the "
            "tf.data.Dataset itself, stoker divides its batches among the workers (divide=)"
        )
    if replicas > 1 and replicas != group.replicas:
        raise ArgumentError(
            f"{name} was distributed to {replicas} replicas, but the model has {group.replicas}: make model and "
            "dataset under the same strategy"
        )


# If a dispatcher takes longer than this to accept a connection, it is not there.
_ANSWERS_S = 10.0


def read_from_service(
    x: Data, y: Data, sample_weight: Data, address: object, group: Group, *, checkpoint: bool
) -> Share:
    """Return this worker's part of the batches that a tf.data service makes from the pipeline `x`.

        dispatcher = tf.data.experimental.service.DispatchServer()      # and WorkerServers, on machines of their own
        stoker.fit(model, batches, data_service=dispatcher.target)

    The servers hand every batch to exactly one worker, whichever asks first. So rows come in no fixed order, an epoch
    that is over for one worker is over for all, and the place in it cannot be saved. Rows on a lost server are lost
    too.

    Raises:
        ArgumentError: the data is not a pipeline, no service answers there, or another argument does not go with it.
    """
    target = _parse_address(address)
    if not isinstance(x, tf.data.Dataset):
        raise ArgumentError(f"data_service= runs a tf.data.Dataset, not {type(x).__name__}")
    if checkpoint:
        raise ArgumentError(
            "data_service= cannot be used with checkpoint=: the position in a service's data cannot be saved"
        )
    _check_reachable(target)
    # Each call of fit is a job of its own for the service, and all our workers take part in the same one.
    name = str(group.ask_chief(lambda: f"stoker-{uuid.uuid4().hex}"))
    own = x if group.alone else x.rebatch(own_size(size_of_batch(x, "data_service="), group))
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    spread = tf.data.experimental.service.distribute(
        processing_mode=policy, service=target, job_name=name, max_outstanding_requests=_AHEAD
    )
    return Share(own.apply(spread), y, sample_weight, None, apart=True, again=False)


# How many batches to request ahead. The batches that one worker holds when another runs out are not trained on in that
# epoch.
_AHEAD = 2


def _parse_address(address: object) -> str:
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


def _check_reachable(target: str) -> None:
    """Refuse a service that cannot be reached: a request to it would wait for ever."""
    host, _, port = target.partition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_S):
            pass
    except (OSError, OverflowError) as error:
        raise UnavailableError(f"data_service={target!r}: no dispatcher answers there ({error})") from None
