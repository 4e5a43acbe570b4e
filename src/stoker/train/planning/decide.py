"""Deciding how to run, by measuring rather than by guessing.

Noise never decides numbers. What cannot change a bit (how many steps a call runs) may follow the clock at any time.
What can (XLA) is decided by rules that do not look at the clock, or measured once and remembered.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import keras
import tensorflow as tf

from stoker import clock
from stoker.errors import ArgumentError
from stoker.tf_internals.types import ConcreteFunction, Graph
from stoker.train.execution import fused_parts
from stoker.train.execution.feed import Feed
from stoker.train.execution.feeding.sources import Source
from stoker.train.execution.loop import Loop
from stoker.train.planning import choices
from stoker.train.planning.choices import Choice
from stoker.train.planning.disturbance import Disturbance
from stoker.train.planning.plan import Plan
from stoker.train.planning.snapshot import Snapshot, difference
from stoker.train.program import StepLoops
from stoker.train.variables import STATEFUL_RANDOM

# Compiling takes XLA a second or more: below this many steps it never pays, so it is not tried.
FEWEST_STEPS_FOR_XLA = 1000
# A job that takes less than this without XLA would not earn back what compiling and trying cost.
_SHORTEST_JOB_S = 8.0
# Steps from one start by which the results of two candidates are compared, and how far apart they may end.
_STEPS_COMPARED = 8
_TOLERANCE = 0.05
# A trial call takes about so long, at most this share of the job. The candidates take turns: so often at least, more
# often while there is time, since the machine may be busy with other things during some of them.
_TRIAL_S = 0.1
_TRIAL_SHARE = 0.005
_FEWEST_TRIALS = 3
_MOST_TRIALS = 15
_TRIALS_S = 1.0
_TRIALS_SHARE = 0.05
# The choice is kept for good, so a gain that a busy machine could fake does not count.
_LEAST_GAIN = 1.2

Maker = Callable[[str], Loop]


def feed_kind(source: Source, wanted: Plan) -> Plan:
    """Resident or streamed."""
    if source.rows is None:
        if wanted.feed == "resident":
            raise ArgumentError(f"plan: the data cannot be resident: {source.why_streamed}")
        return wanted.because(source.why_streamed, feed="streamed")
    if wanted.feed is not None:
        return wanted
    too_large = source.too_large()
    if too_large is not None:
        return wanted.because(too_large, feed="streamed")
    return wanted.because(feed="resident")


def fused(steps: StepLoops, plan: Plan) -> Plan:
    """Parts of the step by one kernel, or in Keras' own ops. A rule: the clock is not asked."""
    if plan.fused and steps.replicated:
        # As of XLA over the update: it may have been saved by a job of another size.
        return plan.because("under a strategy no part is fused", fused=False)
    if plan.fused and not steps.fuses:
        raise ArgumentError("plan: fused=True is for stoker.fit, on one replica")
    if plan.fused is not None:
        return plan
    possible = steps.fuses and not steps.eager and fused_parts.on_processors()
    found = fused_parts.found_in(steps.model) if possible else []
    return plan.because(*found, fused=bool(found))


def jit(steps: StepLoops, feed: Feed, loops: Maker, plan: Plan, total_steps: int | None) -> Plan:
    """XLA over the loop, over the step, or none. May run trial steps; leaves the state as it was, bit for bit.

    On replicas "step" is what each of them computes before the collective, and the trial is of that alone: `loops`
    makes loops without collectives, so that one worker may try it and tell the others.
    """
    if plan.jit is not None and steps.replicated:
        return _pinned_on_replicas(steps, plan)
    if plan.jit is not None:
        if plan.jit == "loop" and feed.kind != "resident":
            raise ArgumentError(
                "plan: jit='loop' needs resident data, and this is streamed: use 'step' or 'none'"
            )
        if plan.jit == "update" and not steps.fuses:
            raise ArgumentError("plan: jit='update' is for stoker.fit, on one replica: use 'step' or 'none'")
        return plan
    refusal = steps.jit_refusal()
    if refusal is None and steps.jit_demanded():
        whole = feed.kind == "resident" and not steps.replicated and not loops("none").logs_are_open
        chosen = "loop" if whole else "step"
        return plan.because("the model was compiled with jit_compile=True", jit=chosen)
    refusal = refusal or _refused_by_rule(feed, total_steps)
    if refusal is not None:
        alone = steps.fuses and not steps.replicated
        if (
            alone
            and total_steps is not None
            and steps.update_refusal(total_steps, fused=bool(plan.fused)) is None
        ):
            return plan.because(refusal, "the update by itself can be compiled, and is large", jit="update")
        return plan.because(refusal, jit="none")
    assert total_steps is not None
    if not steps.replicated:
        return _measured(feed, loops, plan, total_steps, "loop")
    decided = _measured(feed, loops, plan, total_steps, "step")
    # Not what a step takes: the collective is left out.
    return replace(decided, figures={f"alone_{name}": value for name, value in decided.figures.items()})


def _pinned_on_replicas(steps: StepLoops, plan: Plan) -> Plan:
    """What was asked for, or saved by a job of another size, as far as several replicas can do it."""
    refusal = steps.jit_refusal()
    if plan.jit != "none" and refusal is not None:
        return plan.because(f"no XLA: {refusal}", jit="none")
    if plan.jit == "update":
        return plan.because("under a strategy the update is not compiled by itself", jit="none")
    if plan.jit == "loop":
        return plan.because("on several replicas XLA compiles what each computes alone", jit="step")
    return plan


def _refused_by_rule(feed: Feed, total_steps: int | None) -> str | None:
    """Reasons against trying XLA that need no clock."""
    if feed.kind != "resident":
        return "streamed data cannot feed a loop inside XLA"
    if total_steps is None or total_steps < FEWEST_STEPS_FOR_XLA:
        return f"{total_steps} steps would not repay compiling with XLA"
    if any(spec is not None and spec.dtype == tf.string for spec in keras.tree.flatten(feed.spec())):
        return "XLA does not support text"
    if feed.full_steps == 0:
        return "there is no full batch"
    return None


def _measured(feed: Feed, loops: Maker, plan: Plan, total_steps: int, way: str) -> Plan:
    begin = clock.now_ns()
    plain = loops("none")
    concrete = plain.build()
    if plain.logs_are_open:
        return plan.because("a step returns values whose shape XLA does not know beforehand", jit="none")
    hidden = _hidden_random_state(concrete.graph)
    if hidden:
        return plan.because(f"{hidden} keeps its random state where a trial cannot put it back", jit="none")
    # A much longer job decides again.
    key = choices.key_of(concrete, feed.signature(), total_steps.bit_length() // 2)
    choice = choices.recall(key)
    if choice is None:
        if not choices.can_remember():
            return plan.because(f"{choices.DIRECTORY} cannot be written: no choice by the clock", jit="none")
        choice = choices.remember(key, _trial(feed, loops, concrete, total_steps, way))
        figures = {**choice["figures"], "deciding_s": round((clock.now_ns() - begin) / 1e9, 3)}
        reason = f"{choice['reason']}; deciding took {figures['deciding_s']:.1f} s"
    else:
        figures = dict(choice.get("figures", {}))
        reason = f"{choice.get('reason', '')}, as remembered"
    return plan.because(reason, jit=choice["jit"], figures={**plan.figures, **figures})


def _trial(feed: Feed, loops: Maker, concrete: ConcreteFunction, total_steps: int, way: str) -> Choice:
    """Run both candidates from the same state, without XLA and with XLA this way; which one to take, and why."""
    state = Snapshot.of_step(concrete)
    feed.begin_epoch(0)
    try:
        return _compared(feed, loops, state, total_steps, way)
    finally:
        state.restore()


def _compared(feed: Feed, loops: Maker, state: Snapshot, total_steps: int, way: str) -> Choice:
    full = feed.full_steps
    assert full is not None
    few = min(_STEPS_COMPARED, full)
    plain = loops("none")
    _timed(plain, few)
    plain_end = state.now()
    job_s = _timed(plain, few) * total_steps
    steps = min(full, max(few, int(min(_TRIAL_S, _TRIAL_SHARE * job_s) * total_steps / job_s)))
    plain_s = _timed(plain, steps)
    job_s = plain_s * total_steps
    figures = {"none_us": round(plain_s * 1e6, 1)}
    if job_s < _SHORTEST_JOB_S:
        reason = f"XLA not tried: {job_s:.1f} s of training would not repay compiling"
        return {"jit": "none", "reason": reason, "figures": figures}
    state.restore()
    compiled = loops(way)
    begin = clock.now_ns()
    try:
        _timed(compiled, few)
    except tf.errors.OpError as error:
        reason = f"XLA cannot compile it: {str(error.message).strip().splitlines()[0][:120]}"
        return {"jit": "none", "reason": reason, "figures": figures}
    figures["compile_s"] = round((clock.now_ns() - begin) / 1e9, 3)
    apart = difference(state.values, plain_end, state.now())
    figures["apart"] = apart if apart < 1e9 else 1e9
    if apart > _TOLERANCE:
        return {"jit": "none", "reason": "XLA's results differ", "figures": figures}
    return _faster(plain, compiled, steps, total_steps, figures, way)


def _faster(
    plain: Loop, compiled: Loop, steps: int, total_steps: int, figures: dict[str, float], way: str
) -> Choice:
    none: list[float] = []
    loop: list[float] = []
    begin = clock.now_ns()
    budget = min(_TRIALS_S, _TRIALS_SHARE * figures["none_us"] / 1e6 * total_steps)
    while len(none) < _FEWEST_TRIALS or (
        len(none) < _MOST_TRIALS and (clock.now_ns() - begin) / 1e9 < budget
    ):
        # Who comes first changes: neither is always the one that runs on warm caches.
        if len(none) % 2:
            loop.append(_undisturbed(compiled, steps))
        none.append(_undisturbed(plain, steps))
        if len(loop) < len(none):
            loop.append(_undisturbed(compiled, steps))
    figures |= {
        "none_us": round(min(none) * 1e6, 1),
        f"{way}_us": round(min(loop) * 1e6, 1),
        "trials": len(none),
    }
    chosen, reason = by_times(none, loop, total_steps, figures["compile_s"], way)
    return {"jit": chosen, "reason": reason, "figures": figures}


def by_times(
    none: Sequence[float], loop: Sequence[float], total_steps: int, compile_s: float, way: str = "loop"
) -> tuple[str, str]:
    """What the trials speak for, seconds a step of each candidate: XLA only if the best and the median agree on it."""
    pairs = [(min(none), min(loop)), (statistics.median(none), statistics.median(loop))]
    gain = min(without / within for without, within in pairs)
    saved_s = min(without - within for without, within in pairs) * total_steps
    if gain < _LEAST_GAIN:
        return "none", f"XLA is only {gain:.2f}x as fast"
    # Every later run compiles again: what is saved must be more than that.
    if saved_s <= compile_s:
        return "none", f"XLA is {gain:.1f}x as fast, which saves less than compiling takes"
    return way, f"XLA is {gain:.1f}x as fast"


def _undisturbed(loop: Loop, steps: int) -> float:
    """Seconds a step, had the threads not waited for cores: busy ones make many threads as slow as one."""
    waited = Disturbance()
    seconds = _timed(loop, steps)
    return seconds * waited.ran_share()


def _timed(loop: Loop, steps: int) -> float:
    """Seconds a step, of one call that was waited for."""
    begin = clock.now_ns()
    logs = loop.run(0, steps)
    for value in tf.nest.flatten(logs):
        value.numpy()
    return (clock.now_ns() - begin) / 1e9 / steps


_HIDDEN = STATEFUL_RANDOM | {"PyFunc", "EagerPyFunc"}


def _hidden_random_state(graph: Graph) -> str | None:
    """The first op, in the graph or a function of it, whose state is in its kernel."""
    definition = graph.as_graph_def()
    nodes = list(definition.node) + [node for made in definition.library.function for node in made.node_def]
    return next((node.op for node in nodes if node.op in _HIDDEN), None)
