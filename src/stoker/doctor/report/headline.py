"""The sentence at the top: how fast the program is, how fast it could be, what to change first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stoker.doctor.report.words import MINOR, rate
from stoker.records import Finding, Record, WhatIf, speedup_without
from stoker.units import duration, times

_UNIT = re.compile(r"(\d) (s|ms|%)(?![a-z])")


@dataclass(frozen=True)
class HeadlineWords:
    """A part of the sentence. Strong parts should catch the eye."""

    text: str
    strong: bool = False

    def __post_init__(self) -> None:
        # Keep a figure and its unit on one line.
        object.__setattr__(self, "text", _UNIT.sub("\\1\u00a0\\2", self.text))


def sentence(record: Record) -> list[HeadlineWords]:
    """Return the sentence, in parts."""
    if not record.accounts:
        return [HeadlineWords("The program ended before anything was measured.")]
    speed = [HeadlineWords(_speed(record), strong=True)]
    first, possible = first_to_change(record), find_possible_speedup(record)
    if first is None or possible is None or possible.speedup < 1 + MINOR:
        return [*speed, HeadlineWords(", and nothing was found that would make it noticeably faster.")]
    place = f"{_shorten_path(first.file)}:{first.line}"
    return [
        *speed,
        HeadlineWords("; it could be "),
        HeadlineWords(_goal(record, possible), strong=True),
        HeadlineWords("; first change "),
        HeadlineWords(place, strong=True),
        HeadlineWords(f": {_lower_first(first.title)}."),
    ]


def first_to_change(record: Record) -> Finding | None:
    """Return the finding to repair first: the first one of the simulated order, or else the first worth repairing."""
    for place in record.what_if.order[:1] if record.what_if else []:
        for finding in record.findings:
            if finding.key == place.key:
                return finding
    worth = (f for f in record.findings if (speedup_without(f, record) or 1.0) >= 1 + MINOR)
    return next(worth, None)


@dataclass(frozen=True)
class PossibleSpeedup:
    """How much faster a program could be, with the price that says so; None if only lost seconds do."""

    speedup: float
    price: WhatIf | None


def find_possible_speedup(record: Record) -> PossibleSpeedup | None:
    """Return how much faster the program could be: without all findings, or else without the costliest one."""
    if record.what_if and record.what_if.all:
        return PossibleSpeedup(record.what_if.all.speedup, record.what_if.all)
    possible = [PossibleSpeedup(speedup_without(f, record) or 1.0, f.what_if) for f in record.findings]
    return max(possible, key=lambda one: one.speedup, default=None)


def _speed(record: Record) -> str:
    if record.steps_per_s is not None:
        return f"{rate(record.steps_per_s)} steps a second"
    return f"{duration(record.wall_s)} in all"


def _goal(record: Record, possible: PossibleSpeedup) -> str:
    speedup, price = possible.speedup, possible.price
    factor = times(speedup)
    if price is not None and times(price.low) != times(price.high):
        factor += f", between {times(price.low)} and {times(price.high)}"
    # The simulation covers the stepping phase. Without it, only the length of the run is known.
    if record.steps_per_s is not None and record.what_if and record.what_if.all:
        return f"{rate(record.steps_per_s * speedup)} ({factor})"
    return f"done in {duration(record.wall_s / speedup)} instead of {duration(record.wall_s)} ({factor})"


def _shorten_path(file: str) -> str:
    """Return the last part of a path. The finding shows the whole path."""
    return file.replace("\\", "/").rsplit("/", 1)[-1] or file


def _lower_first(title: str) -> str:
    second_is_small = len(title) > 1 and not title[1].isupper() and not title.startswith(("NumPy", "Python"))
    return title[0].lower() + title[1:] if title and second_is_small else title
