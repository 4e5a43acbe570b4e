"""A changing tensor shape or dtype retraces the function."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class RetraceShape(Stall):
    """A function traced again for every new shape or dtype."""

    slug = "retrace-shape"
    code = "STK204"
    account = "trace"
    title = "A changing tensor shape or dtype retraces the function"
    remedy = "Pad or drop the odd batch, or give the dimension as None in an input_signature."
    why = "Every new shape is a new graph: tracing and optimising it takes longer than many steps."


STALL = RetraceShape()
