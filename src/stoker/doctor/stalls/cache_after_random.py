"""The cache freezes random augmentation or order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.chains import complete, is_random
from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis
from stoker.doctor.check.source.values import ChainStage


class CacheAfterRandom(Rule):
    """`cache` after a random map or a shuffle."""

    slug = "cache-after-random"
    code = "STK305"
    account = "input"
    title = "The cache freezes random augmentation or order"
    remedy = "Move cache() before the random map or shuffle."
    severity = "error"
    what = (
        "Reports `cache()` that comes after a map with random augmentation, or after `shuffle` with no other "
        "`shuffle` after the cache."
    )
    why = (
        "The cache keeps what the first epoch drew: every later epoch sees the same augmented images in the same "
        "order. The model trains on less variety than the code seems to give it."
    )
    known_problems = (
        "A shuffle that is meant to fix one order for a split (`reshuffle_each_iteration=False`) is "
        "left alone; allow other deliberate uses with a comment."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report caches that follow a random stage."""
        for _, dataset in complete(analysis):
            for position, stage in enumerate(dataset.stages):
                if stage.name != "cache":
                    continue
                before, after = dataset.stages[:position], dataset.stages[position + 1 :]
                if any(s.name == "map" and is_random(s) for s in before):
                    message = "the cache keeps the first epoch's random augmentation for all epochs"
                    yield self.problem_at(stage.module, stage.node, message)
                elif any(_reshuffles(s) for s in before) and not any(s.name == "shuffle" for s in after):
                    message = "the cache keeps the first epoch's order for all epochs"
                    yield self.problem_at(stage.module, stage.node, message)


def _reshuffles(stage: ChainStage) -> bool:
    if stage.name != "shuffle":
        return False
    for keyword in stage.node.keywords:
        if keyword.arg == "reshuffle_each_iteration":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    return True


STALL = CacheAfterRandom()
