"""The input comes from Python: one thread, under the GIL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Seq, Value
from stoker.doctor.replay.pieces import Piece, mean_s
from stoker.doctor.replay.simulation import wait_for_lock
from stoker.doctor.stalls.shared.input_repair import (
    CROWDED,
    LEFT,
    ExpectedChange,
    InputRepair,
    list_uncertain,
    shrink_slow_stage,
)
from stoker.doctor.stalls.shared.starved_input import Cause, find_starved_pipelines

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program, Source
    from stoker.doctor.replay.simulation import Draw
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding

_NAMES = {
    "tf.py_function": "tf.py_function",
    "tf.numpy_function": "tf.numpy_function",
    "tf.py_func": "tf.py_func",
    "tf1.py_func": "tf.py_func",
    "tf1.py_function": "tf.py_function",
}
_LOADING = re.compile(
    r"load|read|pars|decod|preproc|augment|transform|process_|_map|wrap|tf_|image|audio|encode|token"
)

# The share of a Python stage's work that is left if tf.data does it, a batch at a time.
_LEFT_OF_PYTHON = (0.01, 0.1)


class _WithoutPython(InputRepair):
    """The repair: tf.data does the work of Python, a batch at a time."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Leave a small part of the Python stage's work, and of deleting its iterator."""
        left = draw.between(*_LEFT_OF_PYTHON, LEFT) / wait_for_lock(program, draw)

        def change(piece: Piece) -> Piece:
            return replace(piece, seconds=piece.seconds * left) if _is_teardown(piece) else piece

        return shrink_slow_stage(program.with_pieces(change), left, python=False)

    def frees(self, program: Program, finding: Finding) -> dict[str, float]:
        """Include the wait for Python when an iterator is deleted."""
        down = mean_s(program.steps, _is_teardown)
        return {**super().frees(program, finding), "taking the iterator down": down}

    def tuner_change(self, program: Program, source: Source, finding: Finding) -> ExpectedChange | None:
        """Return the change for a generator. The tuner leaves Python code inside a map alone, as it may do anything."""
        if "from_generator" not in finding.detail.get("pipeline", []):
            return None
        best, worst = _LEFT_OF_PYTHON
        return ExpectedChange(
            "generator drained in chunks", best, worst, "a hundredth to a tenth of the Python stage is left"
        )


def _is_teardown(piece: Piece) -> bool:
    """Return whether a piece deletes an iterator, and belongs to no finding of its own."""
    return piece.account == "teardown" and piece.site is None


class PythonInputPipeline(Rule):
    """`from_generator`, `py_function` and `numpy_function` in input pipelines."""

    slug = "python-input-pipeline"
    code = "STK303"
    account = "input"
    title = "The input comes from Python: one thread, under the GIL"
    remedy = "Read and transform with tf.data ops instead of from_generator, py_function or numpy_function."
    severity = "warning"
    what = (
        "Reports `tf.data.Dataset.from_generator`, a Python generator given to `fit`, and `tf.py_function` or "
        "`tf.numpy_function` where they are mapped over a pipeline."
    )
    why = (
        "Elements then come out of Python one at a time under the interpreter's lock. `num_parallel_calls` does "
        "not help, the training loop competes for the same lock, and each element is copied into a tensor."
    )
    known_problems = (
        "A generator in front of a slow source, such as a database, may be as fast as anything else, and one that only "
        "slices arrays costs little."
    )
    repair = _WithoutPython(
        assumes=f"in tf.data a hundredth to a tenth of the Python stage is left; {CROWDED}",
        uncertain=list_uncertain(LEFT),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report generators anywhere, and Python functions that feed a pipeline."""
        for fact in analysis.facts:
            if not isinstance(fact, Call):
                continue
            if fact.name.endswith("Dataset.from_generator"):
                yield self.problem(
                    fact.at, "elements come out of a Python generator, one at a time under the GIL"
                )
            elif fact.name == "model.fit" and _is_generator(fact.argument(0, "x")):
                yield self.problem(
                    fact.at, "batches come out of a Python generator, one at a time under the GIL"
                )
            elif fact.name in _NAMES and _feeds(fact):
                yield self.problem(
                    fact.at, f"`{_NAMES[fact.name]}` runs Python for each element, under the GIL"
                )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines whose slow stage runs Python."""
        return find_starved_pipelines(m, Cause.PYTHON)


def _is_generator(value: Value | None) -> bool:
    """Whether a value is a generator of the program's own; `zip`, for example, has a source."""
    return isinstance(value, Seq) and value.kind == "generator" and value.source is None


def _feeds(fact: Call) -> bool:
    """Return whether a call feeds a pipeline: it is in a mapped function, or in one whose name says so."""
    name = getattr(fact.at.function, "name", "")
    return fact.at.mapped or bool(_LOADING.search(name.lower()))


STALL = PythonInputPipeline()
