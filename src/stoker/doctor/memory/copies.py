"""Large NumPy arrays and the tensors made from them: values that are held more than once, or never read."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.memory.held import DatasetOnDevice, RepeatedArray
from stoker.tf_internals.types import Tensor

# A second copy of fewer bytes is not worth mentioning.
LARGE_BYTES = 64 << 20
_MAX_ARRAYS = 1000
# A copy that outlives this many steps is not a batch on its way.
_STAYS_STEPS = 10
_HOST = "/CPU:0"
# The code of `from_tensor_slices` and `from_tensors`.
_DATASET_CODE = "/tensorflow/python/data/ops/from_"
_MAX_FRAMES = 30


@dataclass
class _Copied:
    """An array, and the tensors made from it."""

    array: weakref.ref[Any]
    bytes: int
    tensors: list[tuple[weakref.ref[Tensor], str]] = field(default_factory=list)
    site: SiteKey | None = None
    # The line of the last of these tensors that is the source of a dataset.
    dataset_site: SiteKey | None = None
    steps: int = 0


class CopyWatch:
    """Remembers which arrays were copied, by weak references."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self._steps = steps
        self._copied: dict[tuple[int, int, str], _Copied] = {}
        self.repeated: dict[SiteKey, RepeatedArray] = {}
        self.on_device: dict[SiteKey, DatasetOnDevice] = {}

    def note(self, array: Any, tensor: Tensor, site: SiteKey | None) -> None:
        """Note that a tensor was made from an array."""
        owner = _owner_of(array)
        if owner is None or site is None or len(self._copied) >= _MAX_ARRAYS:
            return
        key = (int(array.__array_interface__["data"][0]), int(array.nbytes), str(array.dtype))
        entry = self._copied.get(key)
        if entry is None or entry.array() is not owner:
            entry = self._copied[key] = _Copied(weakref.ref(owner), int(array.nbytes))
        device = "/" + str(tensor.backing_device).rpartition("device:")[2]
        entry.tensors.append((weakref.ref(tensor), device))
        entry.site, entry.steps = site, self._steps()
        if device != _HOST and _is_for_dataset():
            entry.dataset_site = site

    def look(self) -> None:
        """Find arrays with more than one copy in the same memory."""
        for entry in list(self._copied.values()):
            living = [(tensor, device) for tensor, device in entry.tensors if tensor() is not None]
            entry.tensors[:] = living
            if not living or entry.site is None or self._steps() - entry.steps < _STAYS_STEPS:
                continue
            if entry.dataset_site is not None:
                where = living[-1][1]
                self.on_device[entry.dataset_site] = DatasetOnDevice(entry.dataset_site, entry.bytes, where)
            held = Counter(device for _, device in living)
            held[_HOST] += entry.array() is not None
            device, copies = held.most_common(1)[0]
            best = self.repeated.get(entry.site)
            if copies > 1 and (best is None or best.copies * best.bytes < copies * entry.bytes):
                self.repeated[entry.site] = RepeatedArray(entry.site, entry.bytes, copies, device)


def _is_for_dataset() -> bool:
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return False
        if _DATASET_CODE in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _owner_of(array: Any) -> Any:
    """Return the array that owns the memory; None if the memory is a file's or another library's."""
    import numpy as np

    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None and not isinstance(array, np.memmap) else None
