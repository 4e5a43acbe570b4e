"""Arrays that became constants of a graph: NumPy values that a traced function used."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.attach.sites import USER, SiteKey, Sites
from stoker.doctor.memory.held import GraphConstant
from stoker.doctor.memory.inventory import size_of
from stoker.tf_internals import graphs
from stoker.tf_internals.types import Graph, Operation

# Smaller constants are tables and masks.
_LARGE_BYTES = 16 << 20


def large_constants(graph: Graph, sites: Sites) -> Iterator[GraphConstant]:
    """Yield the large constants of a graph, and of the graphs that it calls, with the lines that brought them in."""
    for one in (graph, *graphs.called_graphs(graph)):
        for op in one.get_operations():
            if op.type != "Const" or (size := size_of(op.outputs[0])) < _LARGE_BYTES:
                continue
            site = _line_of(op, sites)
            if site is not None:
                made = op.outputs[0]
                yield GraphConstant(site, size, 1, tuple(made.shape.as_list()), made.dtype.name)


def _line_of(op: Operation, sites: Sites) -> SiteKey | None:
    for frame in reversed(list(op.traceback)):
        if sites.kind_of(frame.filename) == USER:
            return frame.filename, frame.lineno or 0, frame.name
    return None
