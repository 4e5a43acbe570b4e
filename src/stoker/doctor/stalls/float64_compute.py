"""The model computes in float64."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.edits import replace_node
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.tensors import dtype_name
from stoker.doctor.probes.parts.memory import MemoryPart
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements
    from stoker.records import MemoryOwner

# Less float64 memory than this at the peak of a step is not worth a finding.
_LEAST_BYTES = 8 << 20
_EVERYWHERE = ("keras.layers.", "keras.Input", "keras.Sequential")
_POLICIES = frozenset(
    {"keras.backend.set_floatx", "keras.mixed_precision.set_global_policy", "keras.config.set_dtype_policy"}
)
# Functions whose dtype matters in code that runs at each step or inside a graph.
_IN_STEPS = (
    "tf.cast",
    "tf.constant",
    "tf.convert_to_tensor",
    "tf.zeros",
    "tf.ones",
    "tf.random.",
    "tf.linspace",
)


class Float64Compute(Rule):
    """A model or a step that asks for float64."""

    slug = "float64-compute"
    code = "STK402"
    account = "compute"
    title = "The model computes in float64"
    remedy = "Cast the input to float32."
    severity = "warning"
    what = (
        "Reports `set_floatx('float64')`, layers, inputs and variables of dtype float64, and casts to float64 "
        "inside a step or a mapped function."
    )
    why = (
        "Accelerators are built for 32 bits and less: float64 runs at 1/2 to 1/64 of the speed, takes twice the "
        "memory, and training gains nothing from it."
    )
    fix_safety = "Unsafe: results change in the last digits."
    known_problems = "Scientific code that needs double precision must allow it with a comment."

    holds_memory = True

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report calls that ask for float64 where the model computes."""
        for fact in analysis.facts:
            if not isinstance(fact, Call):
                continue
            if fact.name in _POLICIES:
                asked = dtype_name(fact.arguments[0] if fact.arguments else None)
            elif fact.name in ("tf.cast", "tf.constant", "tf.convert_to_tensor"):
                asked = dtype_name(fact.argument(1, "dtype"))
            else:
                asked = dtype_name(fact.keywords.get("dtype"))
            if asked == "float64" and _matters(fact):
                yield self.problem(
                    fact.at, "float64 is slow on accelerators and takes twice the memory", _fix(fact)
                )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report lines that hold much float64 memory at the peak of a step: half of it would do."""
        for book in m[MemoryPart].books:
            for site, size in _count_float64(book.at_peak).items():
                if size >= _LEAST_BYTES:
                    detail = {"device": book.device}
                    yield Draft(site, 0, None, None, bytes=size, saved_bytes=size // 2, detail=detail)


def _count_float64(owners: list[MemoryOwner]) -> Counter[SiteKey]:
    """Count float64 bytes by line. An optimizer's slots follow the weights' dtype: add them to the largest line."""
    held: Counter[SiteKey] = Counter()
    slots: Counter[SiteKey] = Counter()
    for owner in owners:
        if owner.file and owner.float64_bytes:
            counts = slots if owner.role == "optimizer" else held
            counts[owner.file, owner.line, owner.function] += owner.float64_bytes
    if held:
        held[held.most_common(1)[0][0]] += sum(slots.values())
    return held or slots


def _matters(fact: Call) -> bool:
    if fact.name in _POLICIES or fact.name.startswith(_EVERYWHERE) or fact.name == "tf.Variable":
        return True
    return fact.name.startswith(_IN_STEPS) and (fact.at.graph or fact.at.hot)


def _fix(fact: Call) -> Fix | None:
    module = fact.at.module
    for node in (*fact.call.args, *(keyword.value for keyword in fact.call.keywords)):
        if isinstance(node, ast.Constant) and node.value == "float64":
            quote = module.segment(node)[:1]
            if quote in ("'", '"'):
                return Fix("unsafe", (replace_node(module, node, f"{quote}float32{quote}"),), "Use float32")
        if isinstance(node, ast.Attribute) and node.attr == "float64":
            text = module.segment(node).removesuffix("float64") + "float32"
            return Fix("unsafe", (replace_node(module, node, text),), "Use float32")
    return None


STALL = Float64Compute()
