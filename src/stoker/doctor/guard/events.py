"""Events: one sync, copy, retrace or eager op; its line and what it was; and which guards learn of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from stoker.doctor.attach.sites import USER, SiteKey, Sites
from stoker.doctor.guard.scope import Allowed, Region
from stoker.doctor.probes.host_sync import nbytes
from stoker.units import size

SITES = Sites()


@dataclass
class Event:
    """Something that a guard counts. An event without a site was the framework's own doing."""

    kind: str
    site: SiteKey | None
    bytes: int
    # Called only when a line is seen for the first time, because it searches the program's variables.
    what: Callable[[], str]


def deliver(regions: tuple[Region, ...], event: Event) -> None:
    """Tell all guards, the innermost first. Of the guards whose limit is passed, the innermost acts.

    An `allow` region applies to the guards around it, not to those inside it.
    """
    __tracebackhide__ = True
    reason: str | None = None
    passed: Region | None = None
    for region in reversed(regions):
        if not region.open:
            continue
        if isinstance(region, Allowed):
            reason = reason or region.reason
        elif region.count(event, reason) and passed is None:
            passed = region
    if passed is not None:
        passed.act(event)


def describe_read(tensor: Any) -> str:
    """Describe a read: ``read `loss`: float32[32, 10], 1.2 KiB, on CPU:0``."""
    device = str(tensor.backing_device).rpartition("device:")[2]
    shape = ", ".join(str(int(n)) for n in tensor.shape)
    name = name_of(tensor)
    shown = f"read `{name}`" if name else "read a tensor"
    return f"{shown}: {tensor.dtype.name}[{shape}], {size(nbytes(tensor))}, on {device}"


def describe_copy(value: Any, tensor: Any) -> str:
    """Describe a copy: ``copied `batch`: ndarray float32[32, 10], 1.2 KiB``."""
    shape = ", ".join(str(int(n)) for n in tensor.shape)
    name = name_of(value)
    shown = f"copied `{name}`" if name else "copied data"
    return f"{shown}: {type(value).__name__} {tensor.dtype.name}[{shape}], {size(nbytes(tensor))}"


def name_of(value: Any) -> str:
    """Return what the program calls a value: the name of a TensorFlow or Keras variable, or of a Python variable."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and SITES.kind_of(frame.f_code.co_filename) != USER:
        owner = frame.f_locals.get("self")
        if owner is not None and hasattr(owner, "assign") and hasattr(owner, "trainable"):
            return str(getattr(owner, "path", None) or getattr(owner, "name", ""))
        frame = frame.f_back
    if frame is None:
        return ""
    for names in (frame.f_locals, frame.f_globals):
        for name, bound in names.items():
            if bound is value:
                return name
    for name, holder in frame.f_locals.items():
        for attribute, bound in getattr(holder, "__dict__", {}).items():
            if bound is value:
                return f"{name}.{attribute}"
    return ""
