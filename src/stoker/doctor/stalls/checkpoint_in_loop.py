"""The model is saved so often that saving slows the run down."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class CheckpointInLoop(Stall):
    """Saving many times from one line."""

    slug = "checkpoint-in-loop"
    code = "STK506"
    account = "checkpoint"
    title = "The model is saved so often that saving slows the run down"
    remedy = "Save every N steps or minutes, or once an epoch."
    why = "Nothing else runs while the weights are written, and most of those files are never read."


STALL = CheckpointInLoop()
