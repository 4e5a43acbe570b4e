"""Raw 0..255 pixels go into the model."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.models import scales_input
from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Array, Dataset, Seq, Tensor, Value


class UnnormalizedInput(Rule):
    """Pixels that nothing scales on their way into a model."""

    slug = "unnormalized-input"
    code = "STK502"
    account = "compute"
    title = "The model gets raw 0..255 pixels or unscaled columns"
    remedy = "Scale them: a Rescaling or Normalization layer."
    severity = "warning"
    what = (
        "Reports `fit` on images of a well-known data set, or of a directory, that are neither scaled by the code "
        "nor by a `Rescaling`, `Normalization` or `BatchNormalization` layer at the start of the model."
    )
    why = (
        "Values up to 255 make the first layer's gradients hundreds of times too large: training needs many more "
        "steps, or never settles."
    )
    known_problems = "Columns of tables are not judged: their range cannot be read off the code."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report fits on raw pixels of models that do not scale their input."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.name != "model.fit":
                continue
            pixels = _pixels(fact.argument(0, "x"))
            if pixels and not scales_input(fact.receiver):
                yield self.problem(fact.at, f"raw 0..255 pixels ({pixels}) go into the model")


def _pixels(value: Value | None) -> str:
    if isinstance(value, Dataset):
        value = value.element
    if isinstance(value, Seq) and value.items:
        value = value.items[0]
    return value.pixels if isinstance(value, (Array, Tensor)) else ""


STALL = UnnormalizedInput()
