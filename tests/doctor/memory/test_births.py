"""Who made what: known as long as it lives, and not kept alive."""

from __future__ import annotations

import gc

from stoker.doctor.memory.births import Births, Scopes

LINE = ("train.py", 12, "<module>")


class Thing:
    """Can be referred to weakly."""

    __hash__ = None  # type: ignore[assignment]


class Graph:
    """Has a hash, as graphs have."""


def test_a_site_is_known_as_long_as_its_thing_lives() -> None:
    births, thing = Births(), Thing()
    births.note(thing, LINE)
    births.note(thing, ("train.py", 99, "later"))
    assert births.site_of(thing) == LINE
    number = id(thing)
    del thing
    gc.collect()
    assert number not in births._sites
    births.note(Thing(), None)
    assert not births._sites


def test_the_innermost_scope_tells_the_layer_whatever_its_name_says() -> None:
    scopes, graph, model, layer = Scopes(), Graph(), Thing(), Thing()
    scopes.note(graph, "sequential_1", model)
    scopes.note(graph, "sequential_1/dense_1", layer)
    assert scopes.caller_of(graph, "sequential_1/dense_1/MatMul") is layer
    assert scopes.caller_of(graph, "sequential_1/dense_2/MatMul") is model
    assert scopes.caller_of(graph, "adam/Mul") is None
    assert scopes.caller_of(Graph(), "sequential_1/dense_1/MatMul") is None
