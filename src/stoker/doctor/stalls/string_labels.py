"""Labels are strings."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Array, Dataset, Py, Seq, Tensor, Value


class StringLabels(Rule):
    """Strings passed to `fit` as labels."""

    slug = "string-labels"
    code = "STK503"
    account = "compute"
    title = "Labels are strings"
    remedy = "Map them to integers once with StringLookup."
    severity = "error"
    what = (
        "Reports `fit` with labels that the code shows to be strings: a list or array of strings, or a pipeline "
        "whose second part is the piece of a path."
    )
    why = "Losses compute with numbers. Training stops at the first step, after all the loading is done."
    known_problems = "Columns of a data frame have no type that can be read off the code."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report fits whose labels are known to be strings."""
        for fact in analysis.facts:
            if isinstance(fact, Call) and fact.name == "model.fit" and _is_text(_labels(fact)):
                yield self.problem(fact.at, "the labels are strings: map them to integers first")


def _labels(fact: Call) -> Value | None:
    data = fact.argument(0, "x")
    if isinstance(data, Dataset):
        element = data.element
        if isinstance(element, Seq) and element.items is not None and len(element.items) >= 2:
            return element.items[1]
        return None
    return fact.argument(1, "y")


def _is_text(value: Value | None) -> bool:
    if isinstance(value, (Array, Tensor)):
        return value.dtype == "string"
    if isinstance(value, Seq) and value.kind == "list":
        items = value.items or (value.element,)
        return all(isinstance(item, Py) and item.type == "str" for item in items)
    return False


STALL = StringLabels()
