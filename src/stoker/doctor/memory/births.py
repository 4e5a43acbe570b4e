"""The lines that made the program's layers, optimizers, variables and large tensors, and the scopes of their ops."""

from __future__ import annotations

import weakref
from typing import Any

from stoker.doctor.attach.sites import SiteKey
from stoker.tf_internals.types import Graph

# Tensors of at least this size are worth remembering.
LARGE_BYTES = 64 << 10
_MAX_BIRTHS = 20_000


class Births:
    """The sites of objects. An object is known as long as it lives; objects are neither kept alive nor hashed."""

    def __init__(self) -> None:
        # By id, because tensors have no hash.
        self._sites: dict[int, tuple[weakref.ref[Any], SiteKey]] = {}

    def note(self, thing: object, site: SiteKey | None) -> None:
        """Remember where a thing was made, unless that is already known."""
        if site is None or id(thing) in self._sites or len(self._sites) >= _MAX_BIRTHS:
            return
        key, sites = id(thing), self._sites
        sites[key] = (weakref.ref(thing, lambda _: sites.pop(key, None)), site)

    def site_of(self, thing: object) -> SiteKey | None:
        """Return where the thing was made; None if unknown."""
        found = self._sites.get(id(thing))
        return found[1] if found is not None else None

    def forget(self) -> None:
        """Forget everything."""
        self._sites.clear()


class Scopes:
    """The layers and optimizers that opened the name scopes of a graph.

    A scope's name alone is not enough: when `dense` is called a second time, its scope is `dense_1`, even if another
    layer has that name.
    """

    def __init__(self) -> None:
        self._scopes: weakref.WeakKeyDictionary[Graph, dict[str, weakref.ref[Any]]] = (
            weakref.WeakKeyDictionary()
        )

    def note(self, graph: Graph, scope: str, caller: object) -> None:
        """Remember who opened a scope."""
        if scope:
            self._scopes.setdefault(graph, {})[scope] = weakref.ref(caller)

    def caller_of(self, graph: Graph, name: str) -> object | None:
        """Return the layer or optimizer whose scope holds the op of this name; of several, the innermost."""
        scopes = self._scopes.get(graph, {})
        while name:
            name, _, _ = name.rpartition("/")
            found = scopes.get(name)
            if found is not None:
                return found()
        return None
