"""Making the books of the devices from a window of the profiler, and a window around one call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from stoker.doctor.attach.sites import Sites
from stoker.doctor.memory.births import Births, Scopes
from stoker.doctor.memory.book import make_book
from stoker.doctor.memory.events import read_events
from stoker.doctor.memory.inventory import Inventory, take_inventory
from stoker.doctor.memory.owners import Owners, Place
from stoker.records import DeviceMemory
from stoker.tf_internals import distribution, profiler
from stoker.tf_internals.types import ProtoMessage


def read_books(
    space: ProtoMessage,
    inventory: Inventory,
    places: list[Place],
    sites: Sites,
    births: Births,
    scopes: Scopes,
) -> dict[str, DeviceMemory]:
    """Return the book of each device in which something was allocated, by the device's name."""
    found = read_events(space)
    owners = Owners(inventory, places, sites, births, scopes, chain.from_iterable(found.values()))
    books = {
        device: make_book(device, events, inventory.holdings(device), owners.owner_of, _dtype_name)
        for device, events in found.items()
    }
    return {device: book for device, book in books.items() if book is not None}


def watch_call(call: Callable[[], object]) -> list[DeviceMemory]:
    """Run a call and return who owned the devices' memory at its peak. Do nothing if the profiler is in use or unsafe.

    Layers are known by name. Lines are unknown, because nothing noted where the layers were made.
    """
    if profiler.is_profiling()() or distribution.has_peers():
        return []
    births, scopes = Births(), Scopes()
    inventory = take_inventory(births, has_keras=True)
    session = getattr(*profiler.new_session())()
    with tempfile.TemporaryDirectory(prefix="stoker-memory-") as folder:
        session.start(folder, {})
        try:
            call()
            inventory.end_window()
        finally:
            session.export_to_tb()
        file = next(Path(folder).rglob("*.xplane.pb"), None)
        if file is None:
            return []
        space = profiler.space_parser()(file.read_bytes())
    return list(read_books(space, inventory, [], Sites(), births, scopes).values())


def _dtype_name(number: int) -> str:
    import tensorflow as tf

    try:
        return str(tf.dtypes.as_dtype(number).name) if number else ""
    except TypeError:
        return ""
