"""Functions that are traced again: how often, what that loses, and what had changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.doctor.stalls.shared.draft import Draft, most

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.probes.retrace import TracedFunction

# Two traces are usual (a last, smaller batch); from the third on something changes every time.
_MIN_RETRACES = 3


@dataclass(frozen=True)
class Retraced:
    """A function of the user's that was traced again and again."""

    function: TracedFunction
    site: SiteKey
    lost_ns: int

    @property
    def is_made_anew(self) -> bool:
        """Many tf.function objects of one definition, rather than one that is traced for new arguments."""
        function = self.function
        return function.objects >= _MIN_RETRACES and function.retraces < _MIN_RETRACES * function.objects

    @property
    def is_by_python_values(self) -> bool:
        """Whether at least half of what changed were Python values."""
        changes = self.function.changes
        return sum(change.python for change in changes) * 2 >= len(changes)

    def draft(self) -> Draft:
        """A finding about the arguments that changed."""
        function = self.function
        detail: dict[str, Any] = {
            "function": function.name,
            "traces": function.traces,
            "changes": [{"argument": c.argument, "from": c.old, "to": c.new} for c in function.changes[:5]],
        }
        return Draft(self.site, function.retraces, function.ns, self.lost_ns, detail=detail)


def retraced_functions(m: Measurements) -> Iterator[Retraced]:
    """The user's functions that were traced too often."""
    excess = {f.definition: f.first_call_excess_ns(m.graph_busy_share) for f in m.called if f.definition}
    for function in m.traced:
        site = most(function.sites) or function.definition
        if function.definition not in m.users_functions or site is None:
            continue
        repeated = max(1, function.traces - 1)
        first_calls = excess.get(function.definition, 0) * repeated // max(1, function.traces)
        found = Retraced(function, site, function.repeated_ns + first_calls)
        if found.is_made_anew or function.retraces >= _MIN_RETRACES:
            yield found


def retraced_by_arguments(m: Measurements) -> Iterator[Retraced]:
    """Those of them that are one function, called with arguments that change."""
    return (found for found in retraced_functions(m) if not found.is_made_anew)
