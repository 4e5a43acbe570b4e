"""The input pipeline does not prefetch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import autotune, insert_after, remove_between
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Consumed
from stoker.doctor.check.source.loops import LOOK
from stoker.doctor.check.source.values import ChainStage, Dataset, Py
from stoker.doctor.stalls.shared.input_repair import (
    AHEAD,
    CROWDED,
    PREFETCH,
    ExpectedChange,
    InputRepair,
    with_source,
)
from stoker.doctor.stalls.shared.starved_input import Cause, find_starved_pipelines

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program, Source
    from stoker.doctor.replay.simulation import Draw
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding

# Stages that may follow a prefetch, since they neither compute nor wait.
_LIGHT = frozenset({"repeat", "take", "skip", "with_options", "enumerate", "shard", "ignore_errors"})
# Calls whose result or effect depends on when they run.
_CHANGEABLE = (
    "tf.py_function",
    "tf.numpy_function",
    "tf.py_func",
    "tf.print",
    "tf.summary",
    "tf.random.Generator",
    "tf.random.get_global_generator",
    "tf.Variable",
    "tf.lookup",
    "tf.queue",
    "tf.timestamp",
    "tf.io.gfile",
    "tf.io.write_file",
)


class _MadeAhead(InputRepair):
    """The repair: the next element is made while the step runs."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with elements made ahead of their use."""
        return with_source(program, program.source.seconds, ahead=AHEAD) if program.source else program

    def tuner_change(self, program: Program, source: Source, finding: Finding) -> ExpectedChange:
        """Return the tuner's own prefetch."""
        return PREFETCH


class MissingPrefetch(Rule):
    """Pipelines that are consumed without a prefetch at their end."""

    slug = "missing-prefetch"
    code = "STK301"
    account = "input"
    title = "The input pipeline does not prefetch"
    remedy = "End the pipeline with .prefetch(tf.data.AUTOTUNE)."
    severity = "warning"
    what = (
        "Reports a tf.data pipeline that feeds `fit`, `evaluate`, `predict` or a loop of steps and whose last "
        "working transformation is not followed by `prefetch`. A prefetch further up, with work after it, does not "
        "count. Distributed datasets and the directory readers of Keras prefetch by themselves."
    )
    why = (
        "Without it the next batch is prepared only when the step asks for it: input and compute take turns "
        "instead of overlapping."
    )
    fix_safety = (
        "Adding `.prefetch(tf.data.AUTOTUNE)` at the end, or moving an early one there, gives the same "
        "elements in the same order, only sooner. It is safe where all of the pipeline can be seen and is "
        "TensorFlow's own ops; unsafe where an element may depend on when it is made: a generator, a variable"
        " that the loop assigns, a model, a function that could not be followed."
    )
    known_problems = (
        "A pipeline that a function returns is judged where its callers can be seen; if none can, a "
        "caller elsewhere may add the prefetch."
    )
    repair = _MadeAhead(assumes=f"the next element is made while the step runs; {CROWDED}")

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report consumed pipelines that do not end in a prefetch."""
        for fact in analysis.facts:
            if not isinstance(fact, Consumed) or fact.how == "distribute":
                continue
            last = find_unprefetched(fact)
            if last is not None:
                message = (
                    "the pipeline ends here without prefetch: the step waits while the next batch is made"
                )
                yield self.problem_at(last.module, last.node, message, _fix(fact.dataset, last), fact.at)

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines that make each element only when the program asks for it."""
        return find_starved_pipelines(m, Cause.NOTHING_AHEAD)


def find_unprefetched(fact: Consumed) -> ChainStage | None:
    """Return the last working stage of a consumed pipeline, if no prefetch follows it."""
    dataset = fact.dataset
    if dataset.distributed or dataset.inner or not dataset.stages or _is_look(dataset):
        return None
    working = [stage for stage in dataset.stages if stage.name not in _LIGHT]
    if not working or ends_prefetched(dataset):
        return None
    if all(stage.name == "cache" for stage in working) and dataset.prefetched:
        return None
    if fact.how in ("returned", "stored") and (
        dataset.source == "?" or not any("batch" in s.name for s in working)
    ):
        # This may be only half of a pipeline, to which the caller adds stages.
        return None
    return working[-1]


def ends_prefetched(dataset: Dataset) -> bool:
    """Return whether a pipeline's last working stage is a prefetch, or combines pipelines that all end in one."""
    working = [stage for stage in dataset.stages if stage.name not in _LIGHT]
    if not working:
        return dataset.prefetched
    joins = len(working) == 1 and bool(dataset.parts) and dataset.stages[0] is working[0]
    return working[-1].name == "prefetch" or (joins and all(map(ends_prefetched, dataset.parts)))


def _is_look(dataset: Dataset) -> bool:
    return any(
        stage.name == "take" and isinstance(stage.argument, Py) and (stage.argument.const or LOOK + 1) <= LOOK
        for stage in dataset.stages
    )


def _fix(dataset: Dataset, last: ChainStage) -> Fix | None:
    safety = "safe" if _is_settled(dataset) else "unsafe"
    early = [stage for stage in dataset.stages if stage.name == "prefetch"]
    module = last.module
    if not early:
        name = autotune(module, last.node)
        if name is None:
            return None
        edits = (insert_after(module, last.node, f".prefetch({name})"),)
        return Fix(safety, edits, "Add prefetch at the end")
    moved = early[-1]
    owner = moved.node.func.value if isinstance(moved.node.func, ast.Attribute) else None
    same = moved.module is module and _contains(last.node, moved.node)
    if not same or owner is None or len(early) > 1:
        return None
    arguments = ", ".join(
        module.segment(node) for node in (*moved.node.args, *(k.value for k in moved.node.keywords))
    )
    moves = (
        remove_between(module, owner, moved.node),
        insert_after(module, last.node, f".prefetch({arguments})"),
    )
    return Fix(safety, moves, "Move prefetch to the end")


def _is_settled(dataset: Dataset) -> bool:
    """Return whether an element is the same whenever it is made: nothing that it depends on changes in the run."""
    if dataset.source.startswith("tf.data.") and dataset.source.endswith(("from_generator", ".scan")):
        return False
    if not dataset.source.startswith(("tf.data.", "tfds.", "keras.")):
        return False
    effects = {effect for stage in dataset.stages for effect in stage.effects}
    return all(map(_is_pure, effects)) and all(map(_is_settled, dataset.parts))


def _is_pure(effect: str) -> bool:
    if effect == "+weak":
        return True
    # NumPy and Python code runs only once, while the function is traced.
    return effect.startswith(("tf.", "np.", "builtins.", "math.")) and not effect.startswith(_CHANGEABLE)


def _contains(outer: ast.AST, inner: ast.AST) -> bool:
    return outer is not inner and any(node is inner for node in ast.walk(outer))


STALL = MissingPrefetch()
