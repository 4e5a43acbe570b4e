"""The global batch size is not scaled by the number of replicas."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call, Consumed
from stoker.doctor.check.source.values import ChainStage, Dataset, Py, Value

_STRATEGIES = ("MirroredStrategy", "TPUStrategy", "CollectiveAllReduceStrategy")
# Signs that the program multiplies by the replicas somewhere, or counts its batch per replica.
_SCALES = re.compile(
    r"num_replicas_in_sync\s*\)?\s*\*|\*\s*\(?[\w.]*num_replicas_in_sync|per_replica", re.IGNORECASE
)
_TRAINING = frozenset({"fit", "loop", "distribute"})


class UnscaledBatch(Rule):
    """A constant batch size under a strategy."""

    slug = "unscaled-batch"
    code = "STK405"
    account = "compute"
    title = "The global batch size is not scaled by the number of replicas"
    remedy = "Multiply the batch size by strategy.num_replicas_in_sync."
    severity = "warning"
    what = (
        "Reports a constant batch size in a program that trains under a mirrored, multi-worker or TPU strategy "
        "and never mentions `num_replicas_in_sync`."
    )
    why = (
        "The batch size of a dataset is the global one: eight replicas share it. Each then gets an eighth of the "
        "work it could do at once, and most of the devices' time goes into waiting for each other."
    )
    known_problems = (
        "A constant chosen as the global batch size on purpose looks the same; allow it with a comment."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report constant batch sizes in training, if the program makes a strategy with replicas."""
        if not any(isinstance(f, Call) and _makes_strategy(f) for f in analysis.facts):
            return
        if _SCALES.search(analysis.module.text):
            return
        message = "this global batch is shared by all replicas: multiply it by strategy.num_replicas_in_sync"
        for fact in analysis.facts:
            if isinstance(fact, Consumed) and fact.how in _TRAINING:
                stage = _batch(fact.dataset)
                if stage is not None and _is_constant(stage.argument):
                    yield self.problem_at(stage.module, stage.node, message, at=fact.at)
            elif (
                isinstance(fact, Call)
                and fact.name == "model.fit"
                and _is_constant(fact.keywords.get("batch_size"))
            ):
                yield self.problem(fact.at, message)


def _makes_strategy(fact: Call) -> bool:
    return fact.name.startswith("tf.distribute.") and fact.name.endswith(_STRATEGIES)


def _batch(dataset: Dataset) -> ChainStage | None:
    return next(
        (stage for stage in reversed(dataset.stages) if stage.name in ("batch", "padded_batch")), None
    )


def _is_constant(value: Value | None) -> bool:
    return isinstance(value, Py) and isinstance(value.const, int) and not value.replicas


STALL = UnscaledBatch()
