"""Windows of consecutive steps, span by span, and what TensorFlow's profiler saw at the same time.

Seconds count from the start of the run. `docs/whatif.md` has the form as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from stoker.records.reading import Damaged, read
from stoker.records.section import Section, absent
from stoker.units import quantity


class SpanRow(NamedTuple):
    """One interval. `site` is an index into the timeline's list, -1 for none; `wait` is the part spent waiting."""

    start: float
    end: float
    account: str
    site: int
    name: str
    wait: float = 0.0


class StepRow(NamedTuple):
    """The beginning and the end of a step."""

    start: float
    end: float


@dataclass(frozen=True)
class TimelineSite(Section):
    """A line to which spans belong."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True)
class Lane(Section):
    """The spans of one resource, in order of time: `host`, `input`, `copy`, `device`."""

    name: str
    spans: list[SpanRow]


@dataclass(frozen=True)
class TimelineWindow(Section):
    """Some consecutive steps; `cpu_s` is the processor time of all threads during `cpu_wall_s` of wall time.

    `delayed_s` is the part of that time in which the main thread was ready to run but other processes held all
    processors.
    """

    start_s: float
    end_s: float
    steps: list[StepRow]
    lanes: list[Lane]
    cpu_s: float = 0.0
    cpu_wall_s: float = 0.0
    delayed_s: float = absent(0.0)

    @property
    def host(self) -> list[SpanRow]:
        """The spans of the main thread."""
        return next((lane.spans for lane in self.lanes if lane.name == "host"), [])


@dataclass(frozen=True, kw_only=True)
class Timeline(Section):
    """The kept windows of a run."""

    sites: list[TimelineSite] = field(default_factory=list)
    windows: list[TimelineWindow] = field(default_factory=list)

    def site_of(self, span: SpanRow) -> TimelineSite | None:
        """Return the line to which a span belongs."""
        return self.sites[span.site] if span.site >= 0 else None

    def check(self) -> None:
        """Check that every span's site is in the list.

        Raises:
            Damaged: a span's site is not in the list.
        """
        for window in self.windows:
            for lane in window.lanes:
                for span in lane.spans:
                    if span.site >= len(self.sites):
                        raise Damaged(
                            f"has a span at site {span.site}, but only {quantity(len(self.sites), 'site')}"
                        )


class ProfilerEvent(NamedTuple):
    """An interval of TensorFlow's profiler, in microseconds from the start of its window."""

    start_us: float
    length_us: float
    name: str


@dataclass(frozen=True)
class ProfilerWindow(Section):
    """A window of TensorFlow's profiler: its events by thread, and our own spans of the same time."""

    start_s: float
    length_s: float
    threads: dict[str, list[ProfilerEvent]]
    timeline: Timeline | None = None

    @classmethod
    def from_json(cls, data: object) -> ProfilerWindow:
        """Read a window back.

        Raises:
            Damaged: the data is not a window.
        """
        window = read(cls, data)
        if window.timeline is not None:
            window.timeline.check()
        return window
