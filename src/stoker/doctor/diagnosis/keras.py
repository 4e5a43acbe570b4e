"""What Keras' loops are slowed by: callbacks, and predict for a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, every_step, worth
from stoker.doctor.probes.session import Measurements

_FEW_ROWS = 32


def find(m: Measurements) -> Iterator[Draft]:
    """`host-callback-per-batch`, `predict-in-loop`."""
    for callback in m.callbacks:
        lost = callback.ns - callback.elsewhere_ns
        if (
            "batch" in callback.hook
            and callback.site
            and every_step(m, callback.calls)
            and worth(m, lost, 0.01)
        ):
            detail = {"callback": callback.class_name, "hook": callback.hook}
            yield Draft(
                "host-callback-per-batch", callback.site, callback.calls, callback.ns, lost, detail=detail
            )
    for site, calls in m.predicts.items():
        if calls.calls >= MIN_REPEATS and calls.rows <= calls.calls * _FEW_ROWS:
            rows = {"rows_per_call": round(calls.rows / calls.calls, 1)}
            lost = calls.ns - calls.graph_ns
            yield Draft("predict-in-loop", site, calls.calls, calls.ns, lost, detail=rows)
