"""Decides how to run, by measuring rather than by guessing.

Noise never changes the results. Settings that cannot change a bit (how many steps a call runs) may depend on the clock
at any time. Those that can (XLA) are decided by rules that do not look at the clock, or measured once and remembered.
"""

from __future__ import annotations

from dataclasses import replace

import keras
import tensorflow as tf

from stoker import clock
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Graph
from stoker.train.execution import fused_parts, fused_update
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.sources import DataSource
from stoker.train.planning import choices
from stoker.train.planning.plan import Plan
from stoker.train.planning.trials import MakeLoop, Trial
from stoker.train.program import StepLoops
from stoker.train.variables import STATEFUL_RANDOM

# Compiling takes XLA a second or more. With fewer steps than this it never pays, so it is not tried.
FEWEST_STEPS_FOR_XLA = 1000


def choose_feed(source: DataSource, wanted: Plan) -> Plan:
    """Choose between resident and streamed data."""
    if source.rows is None:
        if wanted.feed == "resident":
            raise ArgumentError(f"plan: the data cannot be resident: {source.why_streamed}")
        return wanted.because(source.why_streamed, feed="streamed")
    if wanted.feed is not None:
        return wanted
    too_large = source.explain_too_large()
    if too_large is not None:
        return wanted.because(too_large, feed="streamed")
    return wanted.because(feed="resident")


def choose_fusing(steps: StepLoops, plan: Plan) -> Plan:
    """Choose TensorFlow's kernels or Keras' own ops for parts of the step, by a fixed rule, never by timing."""
    if plan.fused and steps.replicated:
        # As with XLA over the update, a job of another size may have saved this.
        return plan.because("no fused kernels under a strategy", fused=False)
    if plan.fused and not steps.fuses:
        raise ArgumentError("plan: fused=True is for stoker.fit, on one replica")
    if plan.fused is not None:
        return plan
    possible = steps.fuses and not steps.eager and fused_update.on_processors()
    found = fused_parts.find_parts(steps.model) if possible else []
    return plan.because(*found, fused=bool(found))


def choose_jit(
    steps: StepLoops, feed: BatchFeed, loops: MakeLoop, plan: Plan, total_steps: int | None
) -> Plan:
    """Choose XLA over the loop, over the step, or none.

    May run trial steps, but leaves the state as it was, bit for bit.

    On replicas, "step" is what each of them computes before the collective, and the trial covers only that: `loops`
    makes loops without collectives, so that one worker can try it and tell the others.
    """
    if is_cut(plan):
        return _adapt_to_parts(steps, plan)
    if plan.jit is not None and steps.replicated:
        return _adapt_to_replicas(steps, plan)
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
        return plan.because(_DEMANDED, jit=_demanded_jit(steps, feed, loops))
    refusal = refusal or _find_refusal(feed, total_steps)
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
        return _choose_by_trial(feed, loops, plan, total_steps, "loop")
    decided = _choose_by_trial(feed, loops, plan, total_steps, "step")
    # The figures are not those of a whole step, because the collective is left out.
    return replace(decided, figures={f"alone_{name}": value for name, value in decided.figures.items()})


_DEMANDED = "the model was compiled with jit_compile=True"


def choose_jit_to_try(steps: StepLoops, feed: BatchFeed, plan: Plan, *, cut: bool) -> str:
    """Return what XLA compiles while parts of batches are chosen: the final choice, unless a later trial makes it."""
    if plan.jit is not None:
        return "step" if cut and plan.jit == "loop" else plan.jit
    if steps.jit_refusal() is not None or not steps.jit_demanded():
        return "none"
    return "loop" if feed.kind == "resident" and not (cut or steps.replicated) else "step"


def _demanded_jit(steps: StepLoops, feed: BatchFeed, loops: MakeLoop) -> str:
    whole = feed.kind == "resident" and not steps.replicated and not loops("none").logs_are_open
    return "loop" if whole else "step"


def is_cut(plan: Plan) -> bool:
    """Return whether batches are cut into parts."""
    return plan.parts is not None and plan.parts > 1


def _adapt_to_parts(steps: StepLoops, plan: Plan) -> Plan:
    """Use XLA over each part if it was asked for; there is no trial, which would compare steps on the whole batch."""
    refusal = steps.jit_refusal()
    if plan.jit is None and refusal is None and steps.jit_demanded():
        return plan.because(_DEMANDED, jit="step")
    if plan.jit is None or (plan.jit != "none" and refusal is not None):
        return plan.because(refusal or "XLA is not tried on batches in parts", jit="none")
    if plan.jit == "loop":
        return plan.because("with parts, XLA compiles the computation of a part", jit="step")
    return plan


def _adapt_to_replicas(steps: StepLoops, plan: Plan) -> Plan:
    """Limit a plan, given by the user or saved by a job of another size, to what several replicas can do."""
    refusal = steps.jit_refusal()
    if plan.jit != "none" and refusal is not None:
        return plan.because(f"no XLA: {refusal}", jit="none")
    if plan.jit == "update":
        return plan.because("under a strategy the update is not compiled by itself", jit="none")
    if plan.jit == "loop":
        return plan.because("on several replicas XLA compiles what each computes alone", jit="step")
    return plan


def _find_refusal(feed: BatchFeed, total_steps: int | None) -> str | None:
    """Return a reason against trying XLA that needs no clock, or None."""
    if feed.kind != "resident":
        return "streamed data cannot feed a loop inside XLA"
    if total_steps is None or total_steps < FEWEST_STEPS_FOR_XLA:
        return f"{total_steps} steps would not repay compiling with XLA"
    if any(spec is not None and spec.dtype == tf.string for spec in keras.tree.flatten(feed.spec())):
        return "XLA does not support text"
    if feed.full_steps == 0:
        return "there is no full batch"
    return None


def _choose_by_trial(feed: BatchFeed, loops: MakeLoop, plan: Plan, total_steps: int, way: str) -> Plan:
    begin = clock.now_ns()
    plain = loops("none")
    concrete = plain.build()
    if plain.logs_are_open:
        return plan.because("a step returns values whose shape XLA does not know beforehand", jit="none")
    hidden = _find_hidden_state(concrete.graph)
    if hidden:
        return plan.because(f"{hidden} keeps its random state where a trial cannot put it back", jit="none")
    # The key contains the rough number of steps, so that a much longer job decides again.
    key = choices.key_of(concrete, feed.signature(), total_steps.bit_length() // 2)
    choice = choices.recall(key)
    if choice is None:
        if not choices.can_remember():
            return plan.because(f"{choices.DIRECTORY} cannot be written: no choice by timing", jit="none")
        choice = choices.remember(key, Trial(feed, loops, total_steps, way).run(concrete))
        figures = {**choice["figures"], "deciding_s": round((clock.now_ns() - begin) / 1e9, 3)}
        reason = f"{choice['reason']}; deciding took {figures['deciding_s']:.1f} s"
    else:
        figures = dict(choice.get("figures", {}))
        reason = f"{choice.get('reason', '')}, as remembered"
    return plan.because(reason, jit=choice["jit"], figures={**plan.figures, **figures})


# Not `PyFuncStateless`: the program has promised that this one keeps no state.
_HIDDEN = STATEFUL_RANDOM | {"PyFunc", "EagerPyFunc"}


def _find_hidden_state(graph: Graph) -> str | None:
    """Return the first op, in the graph or a function of it, that has state in its kernel."""
    definition = graph.as_graph_def()
    nodes = list(definition.node) + [node for made in definition.library.function for node in made.node_def]
    return next((node.op for node in nodes if node.op in _HIDDEN), None)
