"""A changing tensor shape or dtype retraces the function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.retraces import TracedOnce, find_retraced_by_arguments

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.stalls.shared.draft import Draft


class RetraceShape(Stall):
    """A function traced again for every new shape or dtype."""

    slug = "retrace-shape"
    code = "STK204"
    account = "trace"
    title = "A changing tensor shape or dtype retraces the function"
    remedy = "Pad or drop the odd batch, or give the dimension as None in an input_signature."
    why = "Every new shape needs a new graph, and tracing and optimising it takes longer than many steps."
    repair = TracedOnce()

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report functions traced again because shapes or dtypes changed."""
        return (found.draft() for found in find_retraced_by_arguments(m) if not found.is_by_python_values)


STALL = RetraceShape()
