"""A callback runs Python on the host after every batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call, Fact, TensorRead
from stoker.doctor.check.source.names import BATCH_HOOK, last_name
from stoker.doctor.check.source.values import Func, Py
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.replay.repair import RARE, WARM, DoneRarely
from stoker.doctor.stalls.shared.draft import Draft, happens_every_step, is_worth_reporting

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.records import Finding

_COSTLY = re.compile(
    r"^(builtins\.(print|open)|wandb\.|logging\.|model\.(predict|evaluate|save|save_weights|get_weights|set_weights)"
    r"|tf\.summary\.|keras\.backend\.(get_value|set_value)|np\.save"
    r"|\?\.(write|writerow|info|debug|log|savefig|draw|plot|dump|commit|send|post|flush|add_scalar|log_metric|predict"
    r"|evaluate|save|save_weights|imshow|pause))"
)
# A callback that works every few batches, up to this many, counts as one that works at every batch.
_OFTEN = 10


# What Keras does in a `predict` or `evaluate`, beside the accounts of any callback.
_OF_LOOPS = ("trace", "input", "launch", "compute", "graph", "teardown")


class _CallbackRarely(DoneRarely):
    """The repair: the callback works only every N steps, and so does a `predict` in it."""

    def accounts_of(self, finding: Finding) -> tuple[str, ...]:
        """Return the accounts of any callback, and those of a loop of Keras that this one runs."""
        return (*self.accounts, *_OF_LOOPS) if finding.detail.get("runs_loops") else self.accounts


class HostCallbackPerBatch(Rule):
    """Callbacks with costly work at every batch."""

    slug = "host-callback-per-batch"
    code = "STK103"
    account = "python"
    title = "A callback runs Python on the host after every batch"
    remedy = "Do the work every N batches or in on_epoch_end."
    severity = "warning"
    what = (
        "Reports a Keras callback that prints, logs, writes, predicts, evaluates, saves or reads tensors at every "
        "batch: in its `on_train_batch_end` and the like, in a `LambdaCallback`, or through `TensorBoard("
        "update_freq='batch')` and `ModelCheckpoint(save_freq=1)`. Keeping a number in a list is left alone."
    )
    why = "A callback runs between two steps, in Python: the device has nothing to do until it returns."
    known_problems = "How long the work takes is not known without running."
    # Reads and saves inside a callback are findings of their own.
    repair = _CallbackRarely(
        accounts=("python", "eager", "dispatch"),
        assumes=f"callbacks: {RARE}; {WARM}",
        beside=(0.0, 0.8),
        owns_whole_calls=True,
        claims_loss_only=True,
        only_leaves_out=True,
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report batch methods with costly work, and callbacks configured to work at every batch."""
        for fact in analysis.facts:
            if fact.at.hot and fact.at.presumed in analysis.batch_methods and _is_costly(fact):
                method = fact.at.presumed
                assert method is not None
                message = f"`{method.name}` does costly work in Python at every batch (line {fact.at.line})"
                yield self.problem(fact.at, message, node=method)
            elif isinstance(fact, Call) and fact.name.startswith("keras.callbacks.") and _runs_often(fact):
                yield self.problem(fact.at, "this callback works in Python at every batch or nearly so")

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report callbacks that run at every batch and take at least a hundredth of the run."""
        for callback in m[KerasPart].callbacks:
            lost = callback.ns - callback.elsewhere_ns
            per_batch = "batch" in callback.hook and happens_every_step(m, callback.calls)
            if callback.site and per_batch and is_worth_reporting(m, lost, 0.01):
                detail: dict[str, object] = {
                    "callback": callback.class_name,
                    "hook": callback.hook,
                    "waited_share": round(callback.waited_share, 4),
                }
                if callback.runs_loops:
                    detail["runs_loops"] = True
                yield Draft(callback.site, callback.calls, callback.ns, lost, detail=detail)


def _is_costly(fact: Fact) -> bool:
    return isinstance(fact, TensorRead) or (isinstance(fact, Call) and bool(_COSTLY.match(fact.name)))


def _runs_often(fact: Call) -> bool:
    name = fact.name.rsplit(".", 1)[-1]
    if name == "LambdaCallback":
        return any(BATCH_HOOK.match(key) and _calls(value) for key, value in fact.keywords.items())
    key = {"TensorBoard": "update_freq", "ModelCheckpoint": "save_freq", "BackupAndRestore": "save_freq"}.get(
        name
    )
    value = fact.keywords.get(key or "")
    if not isinstance(value, Py):
        return False
    return value.const == "batch" or (type(value.const) is int and value.const <= _OFTEN)


def _calls(value: object) -> bool:
    if not isinstance(value, Func):
        return True
    costly = (child for child in ast.walk(value.node) if isinstance(child, ast.Call))
    gated = any(isinstance(child, (ast.If, ast.IfExp, ast.BoolOp)) for child in ast.walk(value.node))
    return not gated and any(last_name(child.func) not in ("append", "update") for child in costly)


STALL = HostCallbackPerBatch()
