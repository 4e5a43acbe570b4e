"""Every worker reads the whole dataset."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class UnshardedInput(Stall):
    """A pipeline without a shard in a job of several workers."""

    slug = "unsharded-input"
    code = "STK603"
    account = "input"
    title = "Every worker reads the whole dataset"
    remedy = (
        "Give each worker its part: dataset.shard(size, rank) before shuffle, or a reader of stoker.data."
    )
    why = "Every worker reads, decodes and trains on the same rows: the work of one, done by all."


STALL = UnshardedInput()
