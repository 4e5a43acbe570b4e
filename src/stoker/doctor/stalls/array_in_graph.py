"""A large NumPy array is a constant of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements


class ArrayInGraph(Stall):
    """A NumPy array that a traced function uses."""

    slug = "array-in-graph"
    code = "STK703"
    account = "trace"
    title = "A large NumPy array is a constant of a graph"
    remedy = "Make it a tensor before the function (`tf.constant(array)`), or give it to the function as an argument."
    why = (
        "A `tf.function` that uses a NumPy array writes it into its graph. The graph is copied while it is built and "
        "optimised, so the array takes several times its size, and again for each trace; a graph over 2 GB fails."
    )
    holds_memory = True

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report large constants that tracing put into graphs."""
        for one in m[HeldPart].constants:
            yield Draft(
                one.site,
                one.graphs,
                None,
                None,
                bytes=one.bytes,
                saved_bytes=one.bytes * one.graphs,
                detail={"shape": list(one.shape), "dtype": one.dtype},
            )


STALL = ArrayInGraph()
