"""A tf.function with varying inputs has no input_signature."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import add_argument, insert_after
from stoker.doctor.check.rule import Fix, Problem, Rule, describe
from stoker.doctor.check.source.facts import Analysis, CompiledCall
from stoker.doctor.check.source.values import Compiled, Seq, Tensor, Value


class NoInputSignature(Rule):
    """tf.functions whose inputs change shape from call to call."""

    slug = "no-input-signature"
    code = "STK206"
    account = "trace"
    title = "A tf.function with varying inputs has no input_signature"
    remedy = "Give it an input_signature, with None for the dimensions that vary."
    severity = "warning"
    what = (
        "Reports a tf.function without `input_signature` or `reduce_retracing` that is called in a loop with "
        "tensors whose shape changes: out of `padded_batch` or `bucket_by_sequence_length`, or cut to a changing "
        "length."
    )
    why = "Each new shape is traced as a new graph. Sequences of a hundred different lengths mean a hundred traces."
    fix_safety = (
        "Adding `reduce_retracing=True` is unsafe: the same operations run, in a graph that leaves the "
        "changing dimensions open, but code that reads a dimension in Python (`x.shape[1]`) gets None there."
    )
    known_problems = "A pipeline that pads to one fixed length is recognised by its `padded_shapes`."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report calls in a loop with tensors of changing shape."""
        for fact in analysis.facts:
            if not isinstance(fact, CompiledCall) or not fact.at.repeated:
                continue
            if fact.compiled.signature or fact.compiled.relaxed:
                continue
            for node, value in fact.arguments:
                if _changes_shape(value):
                    message = f"{describe(node)} changes its shape from call to call: each new shape is traced again"
                    how = fact.compiled
                    yield self.problem_at(how.module, how.node, message, _relax(how), fact.at)
                    break


def _changes_shape(value: Value) -> bool:
    if isinstance(value, Seq) and value.items is not None:
        return any(_changes_shape(item) for item in value.items)
    return isinstance(value, Tensor) and value.ragged


def _relax(how: Compiled) -> Fix | None:
    if isinstance(how.node, ast.Call):
        edit = add_argument(how.module, how.node, "reduce_retracing=True")
        return None if edit is None else Fix("unsafe", (edit,), "Let the changing dimensions be open")
    return Fix(
        "unsafe", (insert_after(how.module, how.node, "(reduce_retracing=True)"),), "Leave the shape open"
    )


STALL = NoInputSignature()
