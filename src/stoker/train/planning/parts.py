"""Decides into how many parts batches are cut: as asked for, as measured, or not at all and why."""

from __future__ import annotations

from collections.abc import Callable

import keras

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import layers_of, seed_generators
from stoker.tf_internals.types import Model
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.sources import DataSource
from stoker.train.execution.kept import traces_of
from stoker.train.execution.loop import CompiledLoop
from stoker.train.execution.parts import Cut
from stoker.train.planning.memory import AUTO, MemoryTrials, counts_memory, make_trial_feed
from stoker.train.planning.plan import Plan
from stoker.train.program import StepLoops

# Returns the loop of training steps over a feed, in these parts or whole.
MakeLoop = Callable[[BatchFeed, Cut | None], CompiledLoop]


def choose_parts(
    steps: StepLoops,
    data: DataSource,
    feed: BatchFeed,
    plan: Plan,
    asked: int | str | None,
    *,
    rows: int | None,
    make_loop: MakeLoop,
) -> Plan:
    """Return the plan with the number of parts, if there is anything to decide.

    Args:
        steps: the steps that are trained.
        data: the training data.
        feed: the batches of the training data.
        plan: the plan so far.
        asked: the bytes that a step may need, "auto" for what the device has, None not to cut batches.
        rows: the rows of a batch on one replica; None if not known beforehand.
        make_loop: returns the loops to try.

    Raises:
        ArgumentError: the parts or the size asked for are impossible.
        BatchTooLargeError: a single row does not fit.
    """
    if plan.parts is not None:
        refusal = steps.parts_refusal() if plan.parts > 1 else None
        if refusal is not None:
            raise ArgumentError(f"plan: parts={plan.parts}: {refusal}")
        return _note_differences(steps, plan)
    if asked is None:
        return plan
    refusal = _find_refusal(steps, rows)
    trial_feed = None if refusal is not None or rows is None else make_trial_feed(data, feed, rows)
    if refusal is None and trial_feed is None:
        refusal = "the shape of a batch is not known beforehand"
    if refusal is not None:
        if asked == AUTO:
            return plan.because(f"batches are whole: {refusal}", parts=1)
        raise ArgumentError(f'memory=: {refusal}; plan={{"parts": 4}} cuts batches without measuring')
    assert trial_feed is not None
    assert rows is not None
    found = MemoryTrials(
        lambda cut: make_loop(trial_feed, cut),
        trial_feed,
        rows,
        None if asked == AUTO else int(asked),
        steps.model,
    ).choose()
    # The data of the trials is not needed any more.
    traces_of(steps.model).release()
    figures = {**plan.figures, **found.figures}
    return _note_differences(steps, plan.because(found.reason, parts=found.parts, figures=figures))


def _find_refusal(steps: StepLoops, rows: int | None) -> str | None:
    if not counts_memory():
        return "TensorFlow does not count a CPU's memory"
    if not steps.group.alone:
        return "memory is measured only in a run of one process"
    if rows is None:
        return "the number of rows in a batch is not known beforehand"
    return steps.parts_refusal()


def _note_differences(steps: StepLoops, plan: Plan) -> Plan:
    """Return the plan with a note on what the parts of a batch do differently from the whole batch."""
    if plan.parts == 1:
        return plan
    return plan.because(*_find_differences(steps.model))


def _find_differences(model: Model) -> list[str]:
    layers = layers_of(model)
    found = []
    if any(isinstance(one, keras.layers.BatchNormalization) for one in layers):
        found.append("batch normalisation sees one part at a time")
    if any(seed_generators(one) for one in layers):
        found.append("random layers draw for each part")
    return found
