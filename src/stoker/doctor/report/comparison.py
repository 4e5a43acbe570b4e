"""A comparison on the terminal, as JSON and as a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stoker.doctor.diagnosis.comparison import FAILED, FASTER, SLOWER, Changes, Comparison
from stoker.doctor.probes.parts.environment import OTHER_WORK
from stoker.doctor.report.headline import HeadlineWords
from stoker.doctor.report.page import data, document
from stoker.doctor.report.terminal import Terminal
from stoker.doctor.report.words import MINOR, rate
from stoker.records import ACCOUNTS, Finding, Record, plain
from stoker.units import duration, quantity, times

_MAX_SHOWN = 8
# The smallest difference for which the number of runs to confirm it is given.
_SMALLEST = 0.02

Side = Sequence[Record]


def show(a: Side, b: Side, result: Comparison, found: Changes) -> None:
    """Print a comparison."""
    Terminal().print(render(a, b, result, found))


def render(a: Side, b: Side, result: Comparison, found: Changes) -> RenderableType:
    """Render the verdict, the accounts and the findings."""
    style = {FASTER: "bold green", SLOWER: "bold red", FAILED: "bold red"}.get(result.verdict, "bold")
    parts: list[RenderableType] = [
        Text.assemble("A  ", (names(a), "bright_black")),
        Text.assemble("B  ", (names(b), "bright_black")),
        Text(),
        Text("".join(words.text for words in sentence(result)), style=style),
        Text(runs_words(result), style="bright_black"),
        Text(),
        _accounts(a, b),
        Text(),
    ]
    for title, findings in (("gone", found.gone), ("new", found.new)):
        parts += _list(title, findings, a if title == "gone" else b)
    parts += [Text(f"note: {note}", style="yellow") for note in result.notes]
    return Group(*parts)


def sentence(result: Comparison) -> list[HeadlineWords]:
    """Return the verdict: `B is 25 % faster than A (between 18 % and 33 %): 30.5 against 24.4 steps a second.`"""
    speeds = HeadlineWords(f": {_speed(result.speed_b)} against {_speed(result.speed_a)} {result.measure}.")
    if result.verdict == FAILED:
        return _failure(result)
    if result.verdict in (FASTER, SLOWER):
        share = percent(abs(result.change), signed=False)
        twice = result.change >= 1
        words = f"{share} {'as fast' if twice else result.verdict}"
        return [
            HeadlineWords("B is "),
            HeadlineWords(words, True),
            HeadlineWords(f" {'as' if twice else 'than'} A ({_between(result)})"),
            speeds,
        ]
    return [
        HeadlineWords("Undecided", True),
        HeadlineWords(f": B looks {change_words(result.change)} A, but with {_count_runs(*result.runs)} "),
        HeadlineWords(
            f"anything from {change_words(result.low, '')} to {change_words(result.high, '')} is possible"
        ),
        speeds,
    ]


def _between(result: Comparison) -> str:
    """Return the bounds of a proven difference. The verdict beside them says faster or slower, unless they differ."""
    ends = (result.low, result.high)
    if max(ends) <= 0:
        return f"between {percent(-result.high, signed=False)} and {percent(-result.low, signed=False)}"
    if min(ends) >= 1 or 0 <= min(ends) <= max(ends) < 1:
        return f"between {percent(result.low, signed=False)} and {percent(result.high, signed=False)}"
    return " and ".join([f"between {change_words(result.low, '')}", change_words(result.high, "")])


def _failure(result: Comparison) -> list[HeadlineWords]:
    """Return the verdict on a failed run: `B failed: crashed (exit code 1), so its speed says nothing: ...`"""
    sides = [
        f"{name} failed: {', '.join(runs)}" for name, runs in zip("AB", result.failed, strict=True) if runs
    ]
    whose = "its speed says" if len(sides) == 1 else "their speeds say"
    return [
        HeadlineWords("; ".join(sides), True),
        HeadlineWords(f", so {whose} nothing: fix the run and compare again."),
    ]


def failed_words(result: Comparison) -> str:
    """Say why `--fail-if-slower` is not judged by the speed."""
    who, runs = ("B", result.failed[1]) if result.failed[1] else ("A", result.failed[0])
    return f"{who} failed: {', '.join(runs)}; a limit on its speed does not hold for a run that crashed"


def undecided_words(result: Comparison, limit: float) -> str:
    """Say why it is unknown whether the limit is kept, and how many runs would decide."""
    runs = result.runs_to_judge(limit)
    remedy = "more runs per side would decide" if runs is None else f"run each side {_count(runs)} to decide"
    return (
        f"undecided: B looks {change_words(result.change)} A, and the limit is {limit * 100:g} %, "
        f"but that may be noise: {remedy}"
    )


def runs_words(result: Comparison) -> str:
    """Say how noisy a run is, and how many runs would confirm a difference."""
    digits = 0 if result.noise >= 0.0995 else 1
    noise = f"One run is accurate to about ±{result.noise * 100:.{digits}f} %"
    if result.verdict in (FASTER, SLOWER, FAILED):
        return f"{noise}."
    share = percent(max(abs(result.change), _SMALLEST), signed=False)
    if result.runs_needed is None:
        return f"{noise}: no sensible number of runs would confirm a difference of {share} on this machine."
    return f"{noise}; run each side {_count(result.runs_needed)} to confirm a difference of {share}."


def change_words(change: float, than: str = " than") -> str:
    """Return a change in words: `4.3x as fast as`, `77 % slower than`; with an empty `than`, `77 % slower`."""
    if change >= 1:
        return f"{times(1 + change)} as fast{' as' if than else ''}"
    return f"{percent(abs(change), signed=False)} {'slower' if change < 0 else 'faster'}{than}"


def _count(runs: int) -> str:
    return "twice" if runs == 2 else f"{runs} times"


def _count_runs(a: int, b: int) -> str:
    if a == b:
        return "one run per side" if a == 1 else f"{a} runs per side"
    return f"{a} and {quantity(b, 'run')}"


def percent(share: float, signed: bool = True) -> str:
    """Return a share as `+2.1 %`: in whole numbers from ten per cent on, and as `2.5x` from twice as fast on."""
    if share >= 1:
        return times(1 + share)
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{share * 100:{'+' if signed else ''}.{digits}f} %"


def names(side: Side) -> str:
    """Return the program and the ids of a side."""
    return f"{data.program(side[0])}  ({', '.join(record.id for record in side)})"


def as_json(a: Side, b: Side, result: Comparison, found: Changes) -> dict[str, Any]:
    """Return the comparison as JSON, for other programs."""
    return {
        "a": [record.id for record in a],
        "b": [record.id for record in b],
        **dataclasses.asdict(result),
        "accounts": {name: [_average_account(a, name), _average_account(b, name)] for name in ACCOUNTS},
        "gone": [plain(finding) for finding in found.gone],
        "new": [plain(finding) for finding in found.new],
        "stayed": [[plain(old), plain(new)] for old, new in found.stayed],
    }


def page(a: Side, b: Side, result: Comparison, found: Changes) -> str:
    """Return the page of a comparison."""
    return document.draw(_data(a, b, result, found))


def _data(a: Side, b: Side, result: Comparison, found: Changes) -> dict[str, Any]:
    return {
        "page": "compare",
        "title": f"{data.program(a[0])} → {data.program(b[0])}",
        "sentence": [dataclasses.asdict(words) for words in sentence(result)],
        "facts": [
            ["A", f"{_speed(result.speed_a)} {result.measure}"],
            ["B", f"{_speed(result.speed_b)} {result.measure}"],
            ["change", percent(result.change)],
            ["95 % sure", f"{percent(result.low)} to {percent(result.high)}"],
            ["runs", f"{len(a)} and {len(b)}"],
        ],
        "noise": runs_words(result),
        "notes": list(result.notes),
        "names": [names(a), names(b)],
        "bars": [data.accounts(side[0]) for side in (a, b)],
        "accounts": [
            [
                name,
                duration(_average_account(a, name)),
                duration(_average_account(b, name)),
                _difference(a, b, name),
            ]
            for name in ACCOUNTS
            if _average_account(a, name) or _average_account(b, name)
        ],
        "gone": [_row(finding, a) for finding in found.gone],
        "new": [_row(finding, b) for finding in found.new],
        "stayed": [[*_row(new, b), duration(old.lost_s)] for old, new in found.stayed],
        "quantiles": [_quantiles(side) for side in (a, b)],
        "environment": _differences(a[0], b[0]),
    }


def _row(finding: Finding, side: Side) -> list[str]:
    wall = max(record.wall_s for record in side) or 1.0
    share = (finding.lost_s or 0.0) / wall
    where = f"{finding.file}:{finding.line}"
    return [
        finding.kind,
        where,
        finding.source,
        "" if finding.lost_s is None else f"{share:.1%}",
        duration(finding.lost_s),
    ]


def _quantiles(side: Side) -> list[float] | None:
    """Return the percentiles of step times in milliseconds, over all runs of a side; None if there are few steps."""
    times = sorted(value * 1e3 for record in side for value in record.step_times)
    if len(times) < 20:
        return None
    return [round(times[min(len(times) - 1, len(times) * percent_ // 100)], 4) for percent_ in range(100)]


def _differences(a: Record, b: Record) -> list[list[str]]:
    """Return what differs in the surroundings of two runs: versions, machine, variables, arguments."""
    sides = [
        {
            **record.environment,
            **record.versions,
            "device": record.device.name,
            "program": data.program(record),
        }
        for record in (a, b)
    ]
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return [
        [str(key), str(sides[0].get(key, "–")), str(sides[1].get(key, "–"))]  # noqa: RUF001 - a dash for "none"
        for key in keys
        if key != OTHER_WORK and sides[0].get(key) != sides[1].get(key)
    ]


def _average_account(side: Side, account: str) -> float:
    return sum(record.accounts.get(account, 0.0) for record in side) / len(side)


def _difference(a: Side, b: Side, account: str) -> str:
    difference = _average_account(b, account) - _average_account(a, account)
    return f"{'-' if difference < 0 else '+'}{duration(abs(difference))}"


def _speed(value: float) -> str:
    return rate(value) if value >= 1 else f"{value:.3g}"


def _accounts(a: Side, b: Side) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("account", "A", "B", "change"):
        table.add_column(title, justify="left" if title == "account" else "right")
    rows = [name for name in ACCOUNTS if max(_average_account(a, name), _average_account(b, name)) > 0.0005]
    for name in sorted(rows, key=lambda name: -_average_account(a, name)):
        table.add_row(
            name,
            duration(_average_account(a, name)),
            duration(_average_account(b, name)),
            _difference(a, b, name),
        )
    return table


def _list(title: str, findings: list[Finding], side: Side) -> list[RenderableType]:
    wall = max(record.wall_s for record in side) or 1.0
    dear = [f for f in findings if (f.lost_s or 0) >= MINOR * wall]
    style = "green" if title == "gone" else "red"
    lines: list[RenderableType] = [
        Text.assemble((f"{title:<5}", style), f"{f.kind}  {f.file}:{f.line}  {duration(f.lost_s)} lost")
        for f in dear[:_MAX_SHOWN]
    ]
    hidden = len(findings) - min(len(dear), _MAX_SHOWN)
    if hidden:
        lines.append(
            Text(f"{title:<5}{hidden} smaller {'one' if hidden == 1 else 'ones'}", style="bright_black")
        )
    return lines
