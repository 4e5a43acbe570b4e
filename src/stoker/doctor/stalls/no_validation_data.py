"""fit() has no validation data."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Py, Thing

_VALIDATES = frozenset({"validation_data", "validation_split", "validation_freq"})


class NoValidationData(Rule):
    """Fits over several epochs without any validation."""

    slug = "no-validation-data"
    code = "STK505"
    account = "compute"
    title = "fit() has no validation data"
    remedy = "Pass validation_data or validation_split."
    severity = "info"
    what = (
        "Reports `fit` over several epochs without `validation_data` or `validation_split` in a program that "
        "never calls `evaluate` either."
    )
    why = (
        "Nothing then shows when the model stops improving, so later epochs are wasted, and early "
        "stopping has nothing to go by."
    )
    known_problems = (
        "Models without a target to validate, such as generators, are reported as well unless they "
        "define a `train_step` of their own."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report fits over several epochs without validation, in files that never evaluate."""
        calls = [fact for fact in analysis.facts if isinstance(fact, Call)]
        if any(fact.name == "model.evaluate" for fact in calls):
            return
        for fact in calls:
            if fact.name != "model.fit" or not _VALIDATES.isdisjoint(fact.keywords):
                continue
            if any(keyword.arg is None for keyword in fact.call.keywords) or len(fact.call.args) > 5:
                continue
            if isinstance(fact.receiver, Thing) and "instance" in fact.receiver.about:
                continue
            epochs = fact.keywords.get("epochs")
            if epochs is not None and not (isinstance(epochs, Py) and epochs.const == 1):
                yield self.problem(
                    fact.at, "nothing validates these epochs: pass validation_data or validation_split"
                )


STALL = NoValidationData()
