"""The next elements made while the consumer works on this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.changes import Change, Left, Request

NAME = "prefetch"


def proposals(pipeline: Any, request: Request) -> Iterator[Change | Left]:
    """A prefetch at the end, if there is none."""
    last = pipeline
    while stages.kind(last) == "Options":
        (last,) = stages.inputs(last)
    if stages.kind(last) != "Prefetch":
        yield Change(NAME, stages.described(last), pipeline.prefetch(tf.data.AUTOTUNE))
