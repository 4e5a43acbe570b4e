"""A tensor is read back to the host at every step."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.rule import Problem, Rule, describe
from stoker.doctor.check.source.facts import Analysis, TensorRead
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.tallies import ReadsPart
from stoker.doctor.replay.repair import RARE, DoneRarely
from stoker.doctor.stalls.shared.draft import (
    MIN_REPEATS,
    Draft,
    happens_every_step,
    is_in_loop,
    is_worth_reporting,
)

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements

# A call longer than this is shown without its arguments.
_LONG_CALL = 60
_MAX_CALLS = 2000
_BY_LIBRARY = (
    "{} reads the tensor: call it every N steps, or after the loop. Where every step needs it, let it read one tensor "
    "with all it wants."
)


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
    repair = DoneRarely(
        accounts=("sync",),
        assumes=f"reads: {RARE}; the host then runs ahead of the device",
        only_leaves_out=True,
        experiment="without-reads",
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report every read that runs at each step outside a graph."""
        for fact in analysis.facts:
            if isinstance(fact, TensorRead) and fact.at.hot and not fact.at.graph:
                message = f"{describe(fact.at.node)} {fact.how} at every step: Python waits for the device"
                yield self.problem(fact.at, message)

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report reads at every step, and rarer ones that cost much."""
        for site, tally in m[ReadsPart].by_site.items():
            dear = tally.count >= MIN_REPEATS and is_worth_reporting(m, tally.lost_ns)
            if not dear and not (is_in_loop(m, tally) and happens_every_step(m, tally.count)):
                continue
            detail = dict(tally.detail)
            if not m[DevicePart].runs_beside_host:
                detail["note"] = (
                    "reads are cheap on a synchronous CPU; on an accelerator every one waits for the device"
                )
            if "through" in detail:
                detail["call"] = _quote_call(site, detail["through"])
            yield Draft(
                site,
                tally.count,
                tally.ns,
                tally.lost_ns,
                wait_ns=tally.wait_ns,
                copy_ns=tally.ns - tally.wait_ns,
                bytes=tally.bytes,
                remedy=_BY_LIBRARY.format(detail["call"]) if "call" in detail else None,
                detail=detail,
            )


@functools.lru_cache(maxsize=_MAX_CALLS)
def _quote_call(site: SiteKey, library: str) -> str:
    """Return the call of the library's function as the line writes it (`env.step(action)`), or the function's name."""
    name = library.rsplit(".", 1)[-1]
    line = linecache.getline(site[0], site[1]).strip()
    try:
        tree = ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:
        # The line is only a part of a statement.
        return f"{library}()"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if called == name:
                whole = ast.unparse(node)
                return whole if len(whole) <= _LONG_CALL else f"{ast.unparse(function)}(...)"
    return f"{library}()"


STALL = SyncInLoop()
