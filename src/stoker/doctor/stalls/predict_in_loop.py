"""predict() is called for a few rows at a time in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import replace_node
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Dataset, Seq
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.replay.pieces import Piece, is_loop_python, mean_s
from stoker.doctor.replay.program import is_element
from stoker.doctor.replay.repair import WARM, Repair, site_of
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

_FEW_ROWS = 32

# The rows of one batch in Keras' `predict`.
_PREDICT_BATCH = 32
# A loop that spends more than this share in `predict`, on parts of an array, could pass all rows to one call. In a loop
# that acts or writes text, the next row depends on the last prediction.
_NOTHING_ELSE = 0.9
_GRAPH = ("launch", "compute")


class _CompiledCall(Repair):
    """The repair: a compiled call in place of `predict`, or a single `predict` if the loop does nothing else."""

    def may_claim(self, piece: Piece) -> bool:
        """Exclude the loop's own Python, such as an agent's environment. Pieces of `predict` are named."""
        return not is_loop_python(piece)

    def apply_measured(self, program: Program, finding: Finding, seconds: float) -> Program:
        """Replace everything that `predict` does with the timed call. The rest of the step stays."""
        seconds *= _calls_per_step(program, finding)
        if finding.detail.get("rows_are_there"):
            # A single call of `predict` must be prepared, too.
            ready = mean_s(program.steps, lambda p: self.is_own(p, finding) and p.account not in _GRAPH)
            seconds += ready / max(1, finding.count or 1)
        made = super().apply_measured(program, finding, seconds)
        waits = any(is_element(piece) for step in made.steps for piece in step)
        return made if waits else replace(made, source=None)

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Keep the graph, and replace the rest of `predict` with a compiled call of it."""
        alone = self.own_s(program, finding) > _NOTHING_ELSE * mean_s(program.steps, lambda piece: True)
        # Older records do not say whether all rows were there from the start.
        if alone and finding.detail.get("rows_are_there", True):
            return self._predict_at_once(program, finding)
        calls = _calls_per_step(program, finding)

        def change(step: list[Piece]) -> list[Piece]:
            own = [p for p in step if self.is_own(p, finding)]
            if not own:
                return step
            kept = [p for p in step if not self.is_own(p, finding) or p.account in _GRAPH]
            graph = sum(p.seconds for p in own if p.account in _GRAPH)
            # The call, and the conversion of the row and of its result between NumPy and TensorFlow.
            python = min(calls * program.call_s * 5 / 3, sum(p.seconds for p in own) - graph)
            device = sum(p.device for p in own)
            return [*kept, Piece("dispatch", python, site_of(finding), "graph", device=device)]

        return program.with_steps(change)

    def _predict_at_once(self, program: Program, finding: Finding) -> Program:
        """Return the program with one `predict` for all rows, which pays the overhead once and fills its batches."""
        calls = max(1, finding.count or 1)
        batch = min(1.0, max(1.0, finding.detail.get("rows_per_call", 1.0)) / _PREDICT_BATCH)

        def change(piece: Piece) -> Piece:
            if not self.is_own(piece, finding):
                return piece
            share = batch if piece.account in _GRAPH else 1 / calls
            return replace(piece, seconds=piece.seconds * max(share, 1 / calls))

        # The pieces already include what is left of its input.
        return replace(program.with_pieces(change), source=None)


def _calls_per_step(program: Program, finding: Finding) -> float:
    return (finding.count or 0) / program.count if program.count else 1.0


class PredictInLoop(Rule):
    """Keras `predict` in a loop over rows, images or steps."""

    slug = "predict-in-loop"
    code = "STK501"
    account = "dispatch"
    title = "predict() is called for a few rows at a time in a loop"
    remedy = "Call predict() once on all rows, or predict_on_batch() for each."
    explains_call = True
    severity = "error"
    what = (
        "Reports `predict` of a Keras model inside a loop over rows, files, frames or steps, also when a function "
        "between them makes the call. Once after each `fit` or epoch is fine, and so are a loop over several models, "
        "a `predict` that the program defines itself, and the `predict` of other libraries."
    )
    why = (
        "`predict` is made for many rows: each call sets up a dataset, callbacks and an iterator, some 50 ms, "
        "whatever the input. `predict_on_batch` runs the same compiled function without all that, in less than 1 ms. "
        "A plain call of the model, `model(x)`, takes several times as long as that: it runs op by op."
    )
    fix_safety = (
        "Unsafe: `predict_on_batch` computes the same, but takes no datasets and does not split a large input into "
        "batches."
    )
    known_problems = "A loop over a few large chunks is reported as well, although it costs little there."
    repair = _CompiledCall(
        accounts=(
            *("trace", "input", "eager", "dispatch", "launch", "compute", "graph"),
            *("transfer", "sync", "teardown", "python"),
        ),
        assumes="a compiled call takes the place of predict(); a loop that only predicts gives all rows to one call; "
        f"{WARM}",
        beside=(0.0, 1.0),
        owns_whole_calls=True,
        experiment="call-in-place-of-predict",
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report calls that run again and again on data of the loop."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.name != "model.predict" or not fact.at.hot:
                continue
            if fact.loop_fits or _is_whole(fact):
                continue
            message = "predict() is called for each round of the loop; it costs tens of milliseconds a call"
            yield self.problem(fact.at, message, _predict_on_batch(fact))

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report lines that make many calls for a few rows each."""
        for site, calls in m[KerasPart].predicts.items():
            if calls.calls >= MIN_REPEATS and calls.rows <= calls.calls * _FEW_ROWS:
                rows = {
                    "rows_per_call": round(calls.rows / calls.calls, 1),
                    "rows_are_there": calls.from_arrays == calls.calls,
                }
                yield Draft(site, calls.calls, calls.ns, calls.ns - calls.graph_ns, detail=rows)


def _is_whole(fact: Call) -> bool:
    """Return whether the call gets a whole data set, or the loop walks over models rather than data."""
    given = fact.argument(0, "x")
    if isinstance(given, Dataset):
        return True
    receiver = fact.call.func.value if isinstance(fact.call.func, ast.Attribute) else None
    loop = fact.at.loop
    targets = _targets(loop)
    if isinstance(receiver, ast.Name) and receiver.id in targets:
        return True
    return isinstance(given, Seq) and given.source is not None and isinstance(given.source, Dataset)


def _targets(loop: ast.AST | None) -> set[str]:
    nodes: list[ast.expr] = []
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        nodes = [loop.target]
    elif isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        nodes = [generator.target for generator in loop.generators]
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}


def _predict_on_batch(fact: Call) -> Fix | None:
    module, call = fact.at.module, fact.call
    if (
        len(call.args) != 1
        or not isinstance(call.func, ast.Attribute)
        or isinstance(call.args[0], ast.Starred)
    ):
        return None
    if any(keyword.arg != "verbose" for keyword in call.keywords) or isinstance(
        call.args[0], (ast.List, ast.Tuple)
    ):
        return None
    owner, given = module.segment(call.func.value), module.segment(call.args[0])
    if "\n" in owner or "\n" in given:
        return None
    edit = replace_node(module, call, f"{owner}.predict_on_batch({given})")
    return Fix("unsafe", (edit,), "Predict as one batch")


STALL = PredictInLoop()
