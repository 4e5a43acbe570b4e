"""Batches are shuffled, not examples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.chains import complete
from stoker.doctor.check.edits import insert_after, remove_between
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis
from stoker.doctor.check.source.loops import LOOK, count_taken
from stoker.doctor.check.source.values import ChainStage
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft
from stoker.doctor.stalls.shared.starved_input import is_behind_batch

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

_BATCHING = frozenset({"batch", "padded_batch"})


class ShuffleAfterBatch(Rule):
    """`shuffle` after `batch`."""

    slug = "shuffle-after-batch"
    code = "STK306"
    account = "input"
    title = "Batches are shuffled, not examples"
    remedy = "Shuffle before batch()."
    spoils_results = True
    severity = "warning"
    what = "Reports `shuffle` after `batch` when no further `batch` or `unbatch` follows."
    why = (
        "The same examples stay together in every epoch; only the order of the batches changes. The buffer also "
        "holds whole batches: its size counts batches, not examples."
    )
    fix_safety = "Unsafe: the examples come in a different order, as intended."
    known_problems = (
        "A `batch` that forms one example out of several (a text window) is recognised by the second "
        "`batch` after the shuffle."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report shuffles that come after a batch stage."""
        for _, dataset in complete(analysis):
            batched: ChainStage | None = None
            found: tuple[ChainStage, ChainStage] | None = None
            for stage in dataset.stages:
                if stage.name in _BATCHING:
                    batched, found = stage, None
                elif stage.name in ("unbatch", "flat_map", "window"):
                    batched = found = None
                elif stage.name == "shuffle" and batched is not None:
                    found = (batched, stage)
            # A pipeline that takes few elements only looks at the data, so their order does not matter.
            taken = count_taken(dataset)
            if found is not None and (taken is None or taken > LOOK):
                message = "whole batches are shuffled here: the same examples stay together in every epoch"
                yield self.problem_at(found[1].module, found[1].node, message, _swap(*found))

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report shuffles of whole batches: the order of batches changes, but never the rows inside them."""
        for pipeline in m[InputPart].pipelines:
            names = [stage.name for stage in pipeline.stages]
            for number, stage in enumerate(pipeline.stages):
                if stage.name != "Shuffle" or stage.site is None or pipeline.elements < MIN_REPEATS:
                    continue
                if is_behind_batch(names[number + 1 :]):
                    yield Draft(stage.site, pipeline.elements, 0, 0, detail={"pipeline": names[::-1]})


def _swap(batch: ChainStage, shuffle: ChainStage) -> Fix | None:
    """Return a fix that turns `.batch(b).shuffle(s)`, in one expression, into `.shuffle(s).batch(b)`."""
    module, function = shuffle.module, shuffle.node.func
    if not isinstance(function, ast.Attribute) or function.value is not batch.node:
        return None
    if not isinstance(batch.node.func, ast.Attribute):
        return None
    whole, head = module.segment(shuffle.node), module.segment(batch.node)
    tail = whole[len(head) :]
    if not head or "#" in tail or not tail.strip().startswith("."):
        return None
    edits = (
        insert_after(module, batch.node.func.value, tail),
        remove_between(module, batch.node, shuffle.node),
    )
    return Fix("unsafe", edits, "Shuffle before batch")


STALL = ShuffleAfterBatch()
