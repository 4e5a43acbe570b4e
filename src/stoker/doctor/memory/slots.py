"""Slots that optimizers keep for frozen variables: layers that were frozen after the optimizer was built on them."""

from __future__ import annotations

import weakref
from typing import Any

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.memory.held import HeldSlots
from stoker.tf_internals import keras_optimizers
from stoker.tf_internals.types import Optimizer

_MAX_OPTIMIZERS = 100


class SlotWatch:
    """The program's optimizers, held by weak references."""

    def __init__(self) -> None:
        self._optimizers: dict[int, tuple[weakref.ref[Any], SiteKey]] = {}
        self.frozen: dict[SiteKey, HeldSlots] = {}

    def is_known(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer was noted."""
        found = self._optimizers.get(id(optimizer))
        return found is not None and found[0]() is optimizer

    def note(self, optimizer: Optimizer, site: SiteKey | None) -> None:
        """Note an optimizer that is being made."""
        if site is not None and len(self._optimizers) < _MAX_OPTIMIZERS:
            self._optimizers[id(optimizer)] = (weakref.ref(optimizer), site)

    def look(self) -> None:
        """Add up the slots of frozen variables."""
        for reference, site in list(self._optimizers.values()):
            optimizer = reference()
            if optimizer is None:
                continue
            frozen = [v for v in keras_optimizers.trained_variables(optimizer) if not v.trainable]
            slots = [slot for one in frozen for slot in keras_optimizers.slots_of(optimizer, one)]
            held = sum(keras_optimizers.bytes_of(slot) for slot in slots)
            if held > getattr(self.frozen.get(site), "bytes", 0):
                layer = str(getattr(frozen[0], "path", "")).rpartition("/")[0]
                self.frozen[site] = HeldSlots(site, held, len(frozen), layer)
