"""The data that a program holds in memory without need: plain values for the detectors."""

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
    # The device of its tensors, such as `/GPU:0`.
    device: str


@dataclass(frozen=True)
class RepeatedArray:
    """An array with several copies in the same memory, and the line that made the last copy."""

    site: SiteKey
    bytes: int
    # Includes the NumPy array if the tensors are on the host, too.
    copies: int
    device: str


@dataclass(frozen=True)
class DatasetOnDevice:
    """A dataset's array that was put on a device, where tf.data, which runs on the host, never reads it."""

    site: SiteKey
    bytes: int
    device: str


@dataclass(frozen=True)
class GraphConstant:
    """An array that became a constant of a graph while a function was traced, and the line that uses it."""

    site: SiteKey
    bytes: int
    graphs: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class ValidationPeak:
    """The memory that validation allocates beyond the highest use of a device before it."""

    site: SiteKey
    device: str
    bytes: int
    training_bytes: int


@dataclass(frozen=True)
class HeldSlots:
    """The slots that an optimizer keeps for frozen variables, and the line that made the optimizer."""

    site: SiteKey
    bytes: int
    variables: int
    # The first frozen layer.
    layer: str
