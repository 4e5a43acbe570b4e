"""A cheap map runs once per element instead of once per batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.chains import complete
from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis
from stoker.doctor.check.source.values import ChainStage, Func, Method
from stoker.doctor.stalls.shared.input_repair import CROWDED, InputRepair, shrink_slow_stage
from stoker.doctor.stalls.shared.starved_input import Cause, find_starved_pipelines

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding

# Element-wise functions. They do to a batch what they do to each of its elements.
_ELEMENTWISE = frozenset(
    {
        "tf.cast",
        "tf.lookup",
        "tf.math.divide",
        "tf.divide",
        "tf.subtract",
        "tf.add",
        "tf.multiply",
        "tf.math.multiply",
        "tf.math.log",
        "tf.math.log1p",
        "tf.math.exp",
        "tf.sqrt",
        "tf.square",
        "tf.abs",
        "tf.clip_by_value",
        "tf.one_hot",
        "tf.expand_dims(axis=-1)",
        "tf.image.convert_image_dtype",
        "tf.constant",
        "tf.identity",
        "tf.where",
        "tf.minimum",
        "tf.maximum",
        "tf.zeros_like",
        "tf.ones_like",
        "tf.equal",
        "tf.not_equal",
    }
)
_BETWEEN = frozenset({"shuffle", "repeat", "prefetch", "cache", "take", "skip"})


class _CalledPerBatch(InputRepair):
    """The repair: the slow stage is called once for a batch."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with one call of the slow stage for each batch."""
        return shrink_slow_stage(program, 1 / program.source.slow_calls) if program.source else program


class MapBeforeBatch(Rule):
    """Element-wise maps right before a batch."""

    slug = "map-before-batch"
    code = "STK304"
    account = "input"
    title = "A cheap map runs once per element instead of once per batch"
    remedy = "Batch first, then map a vectorised function over the batches."
    severity = "info"
    what = (
        "Reports a `map` whose function only does element-wise arithmetic (a cast, a scaling, a one-hot) and that "
        "comes before `batch`, so that it is called for each element."
    )
    why = (
        "Calling a function costs some microseconds, whatever it does. For cheap arithmetic that is most of the "
        "cost, and after `batch` it is paid once for all elements of the batch."
    )
    known_problems = (
        "Functions that index or reshape their argument would have to be changed; only functions that "
        "work on a batch as they are get reported."
    )
    repair = _CalledPerBatch(assumes=f"one map call per batch costs what one per element did; {CROWDED}")

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report element-wise maps that could move after a later batch stage."""
        for _, dataset in complete(analysis):
            if dataset.inner:
                continue
            stages = dataset.stages
            for position, stage in enumerate(stages):
                if stage.name == "map" and _batch_follows(stages[position + 1 :]) and _is_elementwise(stage):
                    message = (
                        "this element-wise map runs for each element; after batch it would run once a batch"
                    )
                    yield self.problem_at(stage.module, stage.node, message)

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines whose slow stage is a cheap map that is called for every element."""
        return find_starved_pipelines(m, Cause.CHEAP_MAP)


def _batch_follows(rest: tuple[ChainStage, ...]) -> bool:
    for stage in rest:
        if stage.name in ("batch", "padded_batch"):
            return True
        if stage.name not in _BETWEEN and not (stage.name == "map" and _is_elementwise(stage)):
            return False
    return False


def _is_elementwise(stage: ChainStage) -> bool:
    names = {effect for effect in stage.effects if not effect.startswith("+")}
    function = stage.function
    if names == {"tf.lookup"} and isinstance(function, Method):
        return True
    if not isinstance(function, Func) or not names <= _ELEMENTWISE:
        return False
    works = False
    for node in ast.walk(function.node):
        if isinstance(node, ast.Subscript) and not (
            isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        ):
            return False
        works = works or isinstance(node, (ast.BinOp, ast.Call))
    return works


STALL = MapBeforeBatch()
