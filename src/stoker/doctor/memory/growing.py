"""Containers of tensors that grow while the program steps: a leak, with its bytes per step and the line that adds."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker.doctor.attach.sites import SiteKey, Sites
from stoker.doctor.memory.additions import find_addition
from stoker.doctor.memory.held import GrowingContainer
from stoker.doctor.memory.inventory import size_of
from stoker.doctor.memory.reachable import TensorContainer, copy_from, find_containers, tensors_in
from stoker.tf_internals import eager

# How many of the values that came since the last look are measured.
_SIZED = 200
# Fewer new values than this between two looks do not count as growth with the steps.
_MIN_ADDED = 4
_MAX_OTHERS = 100


@dataclass(frozen=True)
class _Look:
    """A container at one moment. Its first value identifies it at the next look."""

    first: int
    length: int
    bytes: int
    steps: int


class GrowthWatch:
    """Looks at the program's containers from time to time, and compares them with the last look."""

    def __init__(self, sites: Sites, steps: Callable[[], int]) -> None:
        self._sites, self._steps = sites, steps
        self._seen: dict[int, _Look] = {}
        # Objects that only a library may hold, such as callbacks.
        self._others: list[weakref.ref[Any]] = []
        self._lines: dict[tuple[str, str, str], SiteKey | None] = {}
        self.growing: dict[SiteKey, GrowingContainer] = {}
        self.looked_at = 0

    def note(self, thing: object) -> None:
        """Look at the contents of this object, too, as long as it lives."""
        self._others = [one for one in self._others[-_MAX_OTHERS:] if one() is not None]
        if all(one() is not thing for one in self._others):
            self._others.append(weakref.ref(thing))

    def look(self) -> None:
        """Compare the containers' contents with those at the last look."""
        steps = self._steps()
        tensor = eager.tensor_type()
        seen: dict[int, _Look] = {}
        for container in find_containers(self._sites, [one() for one in self._others]):
            before = self._seen.get(id(container.values))
            now = _look_at(container, before, tensor, steps)
            seen[id(container.values)] = now
            if before is not None and before.first == now.first and now.steps > before.steps:
                self._compare(container, before, now)
        self._seen, self.looked_at = seen, steps

    def _compare(self, container: TensorContainer, before: _Look, now: _Look) -> None:
        added, grown = now.length - before.length, now.bytes - before.bytes
        key = (container.file, container.function, container.name)
        if key not in self._lines:
            self._lines[key] = find_addition(*key)
        site = self._lines[key]
        if site is None:
            return
        if added < _MIN_ADDED:
            # It has stopped growing: a buffer that is full.
            self.growing.pop(site, None)
            return
        self.growing[site] = GrowingContainer(
            site,
            container.name,
            type(container.values).__name__,
            now.length,
            now.bytes,
            grown // (now.steps - before.steps),
            _device_of(container),
        )


def _look_at(container: TensorContainer, before: _Look | None, tensor: type, steps: int) -> _Look:
    values = container.values
    every = copy_from(values, 0)
    length, first = len(every), id(every[0] if every else None)
    known = before if before is not None and before.first == first and before.length <= length else None
    new = every[known.length if known is not None else 0 :]
    # Evenly among the new values.
    picked = new[:: max(1, len(new) // _SIZED)]
    sized = sum(size_of(one) for value in picked for one in tensors_in(value, tensor))
    held = (known.bytes if known is not None else 0) + (sized * len(new) // len(picked) if picked else 0)
    return _Look(first, length, held, steps)


def _device_of(container: TensorContainer) -> str:
    last = copy_from(container.values, -1)
    found = next(tensors_in(last[0], eager.tensor_type()), None) if last else None
    device = str(found.backing_device) if found is not None else ""
    return "/" + device.rpartition("device:")[2] if "device:" in device else ""
