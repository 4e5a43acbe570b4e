"""A tensor is read back to the host at every step."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule, describe
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import TensorRead


class SyncInLoop(Rule):
    """Reads of tensors in code that runs at every step."""

    slug = "sync-in-loop"
    code = "STK101"
    account = "sync"
    title = "A tensor is read back to the host in the loop"
    remedy = "Keep values on the device and read them every N steps, or once after the loop."
    severity = "error"
    what = (
        "Reports every place in a training, evaluation or inference loop where Python needs a tensor's value: "
        "`.numpy()`, `float(t)`, `if t:`, an f-string, `np.mean(t)`, a progress bar's postfix, an element stored into "
        "an ndarray. Reads that happen rarely (every N steps, once an epoch, in the first iteration) are left alone."
    )
    why = (
        "The device runs ahead of Python: while a step computes, Python already prepares the next. A read makes "
        "Python wait until everything before it is finished, and while Python waits nothing new is queued, so the "
        "device idles as soon as it is done."
    )
    known_problems = (
        "A tensor that is known to be on the CPU anyway may be reported when it went through an "
        "operation that a GPU would have taken over. Reads inside library code are not seen."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Every read that runs at each step outside a graph."""
        for fact in analysis.facts:
            if isinstance(fact, TensorRead) and fact.at.hot and not fact.at.graph:
                message = f"{describe(fact.at.node)} {fact.how} at every step: Python waits for the device"
                yield self.problem(fact.at, message)


STALL = SyncInLoop()
