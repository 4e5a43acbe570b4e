"""A dataset map runs on one thread."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import add_argument, autotune
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Extended
from stoker.doctor.check.source.values import ChainStage, Func
from stoker.doctor.stalls.shared.input_repair import CROWDED, InputRepair, shrink_slow_stage
from stoker.doctor.stalls.shared.starved_input import Cause, find_starved_pipelines

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding

_PARALLEL_MATTERS = ("map",)
# Syntax that only passes elements on.
_HANDING_ON = (
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Name,
    ast.Subscript,
    ast.Constant,
    ast.Load,
    ast.Starred,
    ast.Attribute,
    ast.Slice,
    ast.UnaryOp,
    ast.USub,
)


class _InParallel(InputRepair):
    """The repair: the slow stage runs on all processors, ahead of the step."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with the slow stage's work divided among the processors."""
        return shrink_slow_stage(program, 1 / program.cores, threads=float(program.cores))


class MapWithoutParallelCalls(Rule):
    """`map` calls that leave `num_parallel_calls` out."""

    slug = "map-without-parallel-calls"
    code = "STK302"
    account = "input"
    title = "A dataset map runs on one thread"
    remedy = "Pass num_parallel_calls=tf.data.AUTOTUNE to map."
    severity = "warning"
    what = (
        "Reports `dataset.map(f)` without `num_parallel_calls`, given by keyword or as the second argument. Maps "
        "that only pick or rearrange what they get are left alone, and so are maps inside `interleave`."
    )
    why = "A map without it handles one element after the other on one thread, however many cores there are."
    fix_safety = (
        "Unsafe: where the function draws random numbers or keeps state, a different order of evaluation "
        "gives different values."
    )
    repair = _InParallel(assumes=f"the map runs on all processors, ahead of the step; {CROWDED}")

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report each map stage that is neither parallel nor trivial."""
        inner = {id(stage.node) for stage in _list_inner_stages(analysis)}
        for fact in analysis.facts:
            if not isinstance(fact, Extended):
                continue
            stage = fact.dataset.stages[-1] if fact.dataset.stages else None
            if (
                stage is None
                or stage.name not in _PARALLEL_MATTERS
                or stage.parallel
                or id(stage.node) in inner
            ):
                continue
            if stage.node is fact.at.node and not _only_hands_on(stage) and not _is_in_mapped_function(fact):
                yield self.problem(fact.at, "this map runs on one thread", _fix(stage))

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines whose slow stage is a map on one thread."""
        return find_starved_pipelines(m, Cause.SERIAL_MAP)


def _list_inner_stages(analysis: Analysis) -> Iterator[ChainStage]:
    for fact in analysis.facts:
        if isinstance(fact, Extended) and fact.dataset.inner:
            yield from fact.dataset.stages


def _is_in_mapped_function(fact: Extended) -> bool:
    # A pipeline made inside a graph is nested in `interleave` or `flat_map`.
    return fact.at.graph


def _only_hands_on(stage: ChainStage) -> bool:
    function = stage.function
    if not isinstance(function, Func) or not isinstance(function.node, ast.Lambda):
        return False
    return all(isinstance(node, _HANDING_ON) for node in ast.walk(function.node.body))


def _fix(stage: ChainStage) -> Fix | None:
    name = autotune(stage.module, stage.node)
    edit = None if name is None else add_argument(stage.module, stage.node, f"num_parallel_calls={name}")
    return None if edit is None else Fix("unsafe", (edit,), "Run the map in parallel")


STALL = MapWithoutParallelCalls()
