"""The memory book of a run: who owned each device's memory when most of it was in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.records.section import ABSENT, Section, absent

# The uses of memory, in the order in which reports show them.
ROLES = ("weights", "optimizer", "gradients", "activations", "workspace", "input", "constants", "other")


@dataclass(frozen=True)
class LargestTensor(Section):
    """The largest piece of an owner: its shape and dtype as TensorFlow writes them, and the op that made it."""

    shape: str = ""
    dtype: str = ""
    op: str = ""


@dataclass(frozen=True)
class MemoryOwner(Section):
    """The memory that one line holds in one role, for one layer. `file` is empty where no line is known."""

    file: str
    line: int
    function: str
    layer: str
    role: str
    bytes: int
    count: int
    largest: LargestTensor = field(default_factory=LargestTensor)
    # How much of it is in 64-bit floating point.
    float64_bytes: int = absent(0)


@dataclass(frozen=True)
class MemoryPoint(Section):
    """Bytes by role, in the order of `ROLES`, at a moment of the step."""

    at_ms: float
    bytes: list[int]


@dataclass(frozen=True)
class DeviceMemory(Section):
    """One device at the highest peak that was seen; the owners sum to it."""

    device: str
    peak_bytes: int
    capacity_bytes: int
    # The share of the free memory outside its largest piece.
    fragmentation: float
    at_peak: list[MemoryOwner]
    # The step around the peak.
    curve: list[MemoryPoint] = field(default_factory=list)
    # The highest peak of the whole run, including start-up. It exceeds `peak_bytes` if no window was open then.
    run_peak_bytes: int = 0
    # The rows of a batch, judged by the shapes of activations, and the bytes that grow with it.
    batch: int | None = None
    batch_bytes: int = 0


@dataclass(frozen=True)
class Saving(Section):
    """A change that needs less memory, and about how many bytes fewer."""

    change: str
    bytes: int


@dataclass(frozen=True)
class FailedAllocation(Section):
    """The allocation that failed, which ended the run for want of memory. The book describes that moment."""

    device: str
    shape: str
    dtype: str
    bytes: int
    op: str
    file: str
    line: int
    function: str
    layer: str
    # The rows of a batch, as far as the tensors show, and the most that can fit; None if there is no such number.
    batch: int | None = None
    largest_batch: int | None = None
    savings: list[Saving] = field(default_factory=list)


@dataclass(frozen=True)
class MemoryBook(Section):
    """The book of each device."""

    device: list[DeviceMemory] = field(default_factory=list)
    failed: FailedAllocation | None = field(default=None, metadata={ABSENT: True})
