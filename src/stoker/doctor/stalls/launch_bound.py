"""Steps are so small that calling them costs more than running them."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class LaunchBound(Stall):
    """Calls, or eager ops, that cost more than what they compute."""

    slug = "launch-bound"
    code = "STK207"
    account = "dispatch"
    title = "Steps are so small that calling them costs more than running them"
    remedy = "Run many steps per call: compile(steps_per_execution=N), or loop inside the tf.function."
    why = "Each call costs the same on the host however little it computes: many small ones cost more than they do."


STALL = LaunchBound()
