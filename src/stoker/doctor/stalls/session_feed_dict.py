"""Session.run is fed through feed_dict."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call

_RUNS = frozenset({"session.run", "session.partial_run"})


class SessionFeedDict(Rule):
    """`session.run(..., feed_dict=...)` in a loop."""

    slug = "session-feed-dict"
    code = "STK104"
    account = "transfer"
    title = "Session.run is fed through feed_dict"
    remedy = "Feed from a tf.data pipeline, or move to tf.function."
    severity = "warning"
    what = "Reports `run` and `eval` with a `feed_dict` in a loop of steps."
    why = (
        "Every value in the dictionary is converted and copied from Python at each step, on the thread that also "
        "drives the session, and none of this overlaps with the computation."
    )
    known_problems = "A dictionary that only feeds a learning rate or a flag costs little."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report runs with a `feed_dict` at each step."""
        for fact in analysis.facts:
            if isinstance(fact, Call) and fact.name in _RUNS and fact.at.hot and _is_fed(fact):
                yield self.problem(fact.at, "values are fed from Python through feed_dict at every step")


def _is_fed(fact: Call) -> bool:
    return len(fact.call.args) > 1 or any(keyword.arg == "feed_dict" for keyword in fact.call.keywords)


STALL = SessionFeedDict()
