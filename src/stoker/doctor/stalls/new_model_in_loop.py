"""Each turn of a loop makes a model, whose steps Keras traces again: k-fold validation, a search over seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.functions import CallsPart, TracesPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft, find_commonest_site, is_worth_reporting
from stoker.doctor.stalls.shared.retraces import TraceRepair

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.program import Program
    from stoker.doctor.replay.simulation import Draw
    from stoker.records import Finding

# Fitting a model, then another one with other settings, is not a loop.
_MIN_MODELS = 3
_MIN_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class _TracedForOne(TraceRepair):
    """The repair: the traces of one model serve all of them."""

    def apply(self, program: Program, finding: Finding, draw: Draw) -> Program:
        """Return the program with only the traces of the first model."""
        return program.with_steps(lambda step: [piece for piece in step if not self.is_own(piece, finding)])


class NewModelInLoop(Stall):
    """Models that are alike, but each traced separately."""

    slug = "new-model-in-loop"
    code = "STK208"
    account = "trace"
    title = "Each turn of the loop makes a new model, and Keras traces its steps again"
    remedy = (
        "If the models are alike, make and compile one before the loop. At the start of each turn set its weights and "
        "its optimizer's variables back to the values they had."
    )
    why = (
        "Keras traces and optimises the training step of every compiled model once. That takes seconds, whatever the "
        "amount of data: with small folds it is most of the run. A model that stays has been traced already."
    )
    repair = _TracedForOne(
        accounts=("trace",),
        assumes="one model, with its weights and optimizer reset, serves all turns of the loop",
        claims_loss_only=True,
        only_leaves_out=True,
    )

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report functions of Keras that one line causes to be traced for model after model."""
        busy_share, traces = m[WindowsPart].graph_busy_share, m[TracesPart]
        excess = {f.definition: f.first_call_excess_ns(busy_share) for f in m[CallsPart].functions}
        for function in traces.functions:
            # Lines that fit, evaluate and predict share one definition; a model is traced once for each kind.
            site = find_commonest_site(
                {line: count for line, count in function.sites.items() if line in m[KerasPart].fits}
            )
            if site is None or not function.updates_variables:
                continue
            models = function.sites[site]
            # Exclude a single model that is traced for batches of new shapes.
            anew = function.objects >= _MIN_MODELS and function.retraces < function.objects
            if models < _MIN_MODELS or not anew or function.definition in traces.users_functions:
                continue
            spent = function.ns + excess.get(function.definition, 0)
            lost = spent * (function.traces - len(function.sites)) // function.traces
            if is_worth_reporting(m, lost, share=_MIN_SHARE):
                detail = {"function": function.name, "models": models, "traces": function.traces}
                yield Draft(site, models, spent, lost, detail=detail)


STALL = NewModelInLoop()
