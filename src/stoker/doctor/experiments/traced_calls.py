"""Functions that are traced again and again: the graphs that they already have, called once more.

A repaired function has one graph for all calls. If only Python values change, any existing graph does the same work. If
shapes change, the time of a call depends on the shape, so the graph for a shape of about the mean size is timed. The
functions are the program's own, as they were traced.
"""

from __future__ import annotations

import math
import re
from functools import partial
from statistics import fmean

from stoker.doctor.experiments.checking import set_variables
from stoker.doctor.experiments.compiled_calls import (
    check_call,
    compile_call,
    fit_to_shapes,
    rebuild_call,
)
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, Rebuilt
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.trial import RepairTrial
from stoker.records import Finding
from stoker.tf_internals import recorded_ops
from stoker.tf_internals.recorded_ops import Shapes
from stoker.tf_internals.types import ProtoMessage

# How close a shape must be to the mean size, as a share, for its graph to take as long.
_CLOSE = 0.1


def same_graph(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of a call of the function that finds its graph, for data of the mean size."""
    function = str(finding.detail.get("function", ""))
    call = _last_call(step, function)
    if recorded_ops.is_compiled_by_xla(step.functions[call.name]):
        raise CannotRebuildStep("XLA compiles the function for each shape")
    recorded = rebuild_call(step, call)
    check_call(step, call, recorded)
    usual = _call_of_mean_size(step, call, function) or recorded
    return RepairTrial(None, Way(usual, partial(set_variables, step.before)))


def _last_call(step: RecordedStep, function: str) -> RecordedOp:
    calls = [op for op in step.ops() if op.name in step.functions and _is_graph_of(op.name, function)]
    if not calls:
        raise CannotRebuildStep("the recorded step does not call the function")
    return calls[-1]


def _is_graph_of(name: str, function: str) -> bool:
    """Return whether a compiled function was traced from a Python function of this name."""
    return re.fullmatch(rf"__(inference|forward)_{re.escape(function)}_\d+", name) is not None


def _call_of_mean_size(step: RecordedStep, call: RecordedOp, function: str) -> Rebuilt | None:
    """Return a call of the graph whose inputs are nearest to the mean size; None if that is the recorded call."""
    recorded = step.functions[call.name]
    own = recorded_ops.input_shapes(recorded)
    graphs: dict[Shapes, str] = {}
    for name in recorded_ops.compiled_function_names():
        definition = recorded_ops.compiled_function(name) if _is_graph_of(name, function) else None
        if definition is not None and _takes_the_same(definition, recorded):
            graphs.setdefault(recorded_ops.input_shapes(definition), name)
    mean = fmean(map(_size, graphs)) if graphs else _size(own)
    nearest = min(graphs, key=lambda shapes: abs(_size(shapes) - mean), default=own)
    if abs(_size(own) - mean) <= mean * _CLOSE or nearest == own:
        return None
    inputs = fit_to_shapes([step.values[number] for number in call.inputs], nearest)
    return compile_call(step, call, graphs[nearest], inputs)


def _takes_the_same(definition: ProtoMessage, recorded: ProtoMessage) -> bool:
    """Return whether two graphs take inputs of the same names and types. Then only the shapes can differ."""
    one, other = (
        [(argument.name, argument.type) for argument in made.signature.input_arg]
        for made in (definition, recorded)
    )
    return one == other


def _size(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes if shape is not None)
