"""How far off the model was where a repair was really made and measured, kind by kind: what bounds are made of.

Two things cannot be seen in a run. What stays of a step is quicker once a stall is gone: it no longer begins with cold
caches and threads asleep (`beside`). And the model itself is off (`spread`).

The figures are read off `python benchmarks/whatif.py --residuals`, for the examples and the development programs, never
for those held out: for each pair, what `beside` would have to be for the price to be right, and how far off it was.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """For one kind."""

    # How much quicker what stays on the host becomes, for each unit of the stall's share of a step: least and most.
    beside: tuple[float, float] = (0.0, 0.0)
    # How far off a price may be, as a part of the gain's logarithm: less, more.
    spread: tuple[float, float] = (0.4, 0.6)


# Tracing keeps other code in the caches than saving does, and a callback other than `predict`: by kind, then.
_TRACED = Calibration(beside=(0.0, 0.5))
_INPUT = Calibration(spread=(0.5, 0.6))
_OTHERS = Calibration()
_BY_KIND = {
    "eager-train-step": Calibration(beside=(0.0, 0.7), spread=(0.4, 0.4)),
    "checkpoint-in-loop": Calibration(beside=(0.0, 0.5)),
    "host-callback-per-batch": Calibration(beside=(0.0, 0.8)),
    "numpy-feed-in-loop": Calibration(beside=(0.0, 1.0)),
    "predict-in-loop": Calibration(beside=(0.0, 1.0)),
    "retrace-python-arg": _TRACED,
    "retrace-shape": _TRACED,
    "tf-function-in-loop": _TRACED,
    "missing-prefetch": _INPUT,
    "map-without-parallel-calls": _INPUT,
    "map-before-batch": _INPUT,
    "python-input-pipeline": _INPUT,
    "input-starved": _INPUT,
}


def of_kind(kind: str) -> Calibration:
    """The figures for a kind."""
    return _BY_KIND.get(kind, _OTHERS)
