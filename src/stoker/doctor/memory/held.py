"""What a program holds in memory and need not: plain values, for detectors."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.doctor.attach.sites import SiteKey


@dataclass(frozen=True)
class GrowingContainer:
    """A list, dict or deque of tensors that grows with the steps, and the line that adds to it."""

    site: SiteKey
    name: str
    kind: str
    length: int
    bytes: int
    bytes_per_step: int
    # Where its tensors are: `/GPU:0`.
    device: str


@dataclass(frozen=True)
class RepeatedArray:
    """An array of which one memory has several copies, and the line that made the last of them."""

    site: SiteKey
    bytes: int
    # The NumPy array counts, where the tensors are on the host too.
    copies: int
    device: str


@dataclass(frozen=True)
class DatasetOnDevice:
    """The array of a dataset that was put on a device, where tf.data, which runs on the host, never reads it."""

    site: SiteKey
    bytes: int
    device: str


@dataclass(frozen=True)
class GraphConstant:
    """An array that became a constant of a graph while a function was traced, and the line that uses it."""

    site: SiteKey
    bytes: int
    graphs: int
    shape: str
    dtype: str


@dataclass(frozen=True)
class ValidationPeak:
    """What validation allocates beyond all that had been in use on a device before it."""

    site: SiteKey
    device: str
    bytes: int
    training_bytes: int


@dataclass(frozen=True)
class FrozenSlots:
    """What an optimizer keeps for variables that are frozen, and the line that made the optimizer."""

    site: SiteKey
    bytes: int
    variables: int
    # The first of the frozen layers.
    layer: str
