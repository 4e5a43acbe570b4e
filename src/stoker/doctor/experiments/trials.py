"""The trials: for each kind of repair, what is timed of the recorded step, as it was and as repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from stoker.doctor.experiments.checking import check_rebuilt, set_variables
from stoker.doctor.experiments.fit_steps import call_with_iterator, list_ops_of_call
from stoker.doctor.experiments.host_batches import resident_data
from stoker.doctor.experiments.marking import OwnOps
from stoker.doctor.experiments.predictions import call_in_place_of_predict
from stoker.doctor.experiments.reads import without_reads
from stoker.doctor.experiments.rebuilding import (
    CannotRebuildStep,
    check_repeatable,
    is_input,
    is_random,
    list_repeatable,
    rebuild,
    rebuild_as_loop,
    replay,
)
from stoker.doctor.experiments.recorded_step import RecordedFeed, RecordedOp, RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.traced_calls import same_graph
from stoker.doctor.experiments.trial import RepairTrial, is_at, is_in_function, is_in_loop_of
from stoker.records import Finding

# With fewer ops, the finding is about something else.
_FEW_OPS = 5
# Steps that run in one call: so many that the start of the call does not matter.
_TURNS = 256


def function_as_graph(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of the finding's function: its eager ops, or in `fit` all that Keras compiles, as one graph."""
    return _as_graph(step, [op for op in step.ops() if is_in_function(op.stack, finding)])


def line_as_graph(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of the eager ops of the finding's line, and of what it calls, as one graph."""
    return _as_graph(step, [op for op in step.ops() if is_at(op.stack, finding)])


def _as_graph(step: RecordedStep, chosen: Sequence[RecordedOp]) -> RepairTrial:
    own = {id(op) for op in chosen}
    call = [] if own.isdisjoint(map(id, list_ops_of_call(step))) else list_ops_of_call(step)
    chosen = call or chosen
    ops = [op for op in chosen if not is_input(op)]
    if len(ops) < _FEW_OPS:
        raise CannotRebuildStep("the recorded step has too few ops of this finding")
    for op in ops:
        check_repeatable(op, step)
    rebuilt = rebuild(step, ops)
    checked = rebuild(step, ops, frozen=True) if any(is_random(op) for op in ops) else rebuilt
    check_rebuilt(step, ops, checked)
    if call:
        rebuilt = call_with_iterator(step, call[0], rebuilt)
    prepare = partial(set_variables, step.before)
    covers = len(ops) / sum(not is_input(op) for op in step.ops())
    return RepairTrial(
        Way(replay(step, list_repeatable(step, ops)), prepare),
        Way(rebuilt, prepare),
        covers=covers,
        replaces=OwnOps(
            places_of(ops), waits=places_of(op for op in chosen if is_input(op)), in_fit=bool(call)
        ),
    )


def places_of(ops: Iterable[RecordedOp]) -> frozenset[int]:
    """Return the places of ops among those of the step."""
    return frozenset(op.place for op in ops if op.place >= 0)


def many_steps(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of the finding's compiled calls, with their loop's eager ops, many times in one call."""
    _calls(step, finding)
    ops = [op for op in step.ops() if is_in_loop_of(op.stack, finding) and not is_input(op)]
    for op in ops:
        check_repeatable(op, step)
    check_rebuilt(step, ops, rebuild_as_loop(step, ops, 1))
    prepare = partial(set_variables, step.before)
    return RepairTrial(
        None,
        Way(rebuild_as_loop(step, ops, _TURNS), prepare),
        steps=_TURNS,
        replaces=OwnOps(places_of(ops), apart=True),
    )


def _calls(step: RecordedStep, finding: Finding) -> list[RecordedOp]:
    """Return the calls of compiled functions at the finding's line."""
    calls = [op for op in step.ops() if op.name in step.functions and is_at(op.stack, finding)]
    if not calls:
        raise CannotRebuildStep("the recorded step does not call anything there")
    for op in calls:
        check_repeatable(op, step)
    return calls


def calls_alone(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of a starved step: its compiled calls on the recorded batch, while nothing makes the next one.

    Nothing is rebuilt or checked.
    """
    calls = [op for op in step.ops() if op.name in step.functions]
    if not calls:
        raise CannotRebuildStep("the recorded step calls no compiled function")
    for call in calls:
        check_repeatable(call, step)
    return RepairTrial(None, Way(replay(step, calls), partial(set_variables, step.before)))


# The trials, by the names that repairs give to their experiments.
TRIALS: dict[str, Callable[[RecordedStep, Finding], RepairTrial]] = {
    "function-as-graph": function_as_graph,
    "line-as-graph": line_as_graph,
    "many-steps": many_steps,
    "resident-data": resident_data,
    "same-graph": same_graph,
    "without-reads": without_reads,
    "calls-alone": calls_alone,
    "call-in-place-of-predict": call_in_place_of_predict,
}

# Trials that all findings of their kind in one function share.
WHOLE_FUNCTIONS = frozenset({"resident-data"})

# Trials of findings whose own time is short compared with what goes away with it.
ALWAYS_WORTH_IT = frozenset({"resident-data", "without-reads"})

# Trials that time no repair, but only what no repair can exceed.
BOUNDING = frozenset({"calls-alone"})


def best_step(steps: Sequence[RecordedStep], finding: Finding) -> RecordedStep | None:
    """Return the recorded step with the most ops and feeds at the finding's line."""

    def count(step: RecordedStep) -> tuple[int, int]:
        stacks = [op.stack for op in step.ops()]
        fed = [event.stack for event in step.events if isinstance(event, RecordedFeed)]
        at_line = sum(is_at(stack, finding) for stack in stacks + fed)
        return at_line, sum(is_in_function(stack, finding) for stack in stacks)

    return max(steps, key=count, default=None)
