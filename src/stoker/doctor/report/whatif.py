"""A what-if on the terminal: the question, how much faster, and in plain words what the answer assumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from stoker.doctor.report.terminal import Terminal
from stoker.records import WhatIf
from stoker.units import duration, long_duration, times


def price(what_if: WhatIf | Mapping[str, Any]) -> str:
    """Return a price as `3.1x (2.6-3.5)`."""
    if not isinstance(what_if, WhatIf):
        what_if = WhatIf(what_if["speedup"], what_if["low"], what_if["high"])
    return f"{times(what_if.speedup)} {_bounds(what_if)}"


def gain(what_if: WhatIf) -> str:
    """Return a price in a sentence, where `3.1x` alone could be read as slower: `3.1x faster (2.6-3.5)`."""
    return f"{times(what_if.speedup)} faster {_bounds(what_if)}"


def _bounds(what_if: WhatIf) -> str:
    return f"({times(what_if.low)[:-1]}-{times(what_if.high)[:-1]})"


def show(answer: Mapping[str, Any]) -> None:
    """Print an answer of `stoker whatif` to stdout."""
    console = Terminal()
    console.print(Text(f"what if  {answer['program']}  (run {answer['run']})", style="bold"))
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column()
    table.add_row("as it was", "1x", "", _rates(answer["measured"]))
    for row in answer["rows"]:
        table.add_row(Text(row["what"]), Text(price(row), style="bold"), row["basis"], _rates(row))
    console.print(table)
    console.print(Text(_meaning({row["basis"] for row in answer["rows"]}), style="yellow"))
    for line in answer["assumptions"]:
        console.print(Text(f"- {line}", style="bright_black"))


def _meaning(bases: set[str]) -> str:
    """Return the sentence that introduces the assumptions."""
    if "measured" not in bases:
        return "This is a model, not a measurement: it replays the recorded steps. It assumes:"
    replays = "A modelled price replays the recorded steps. " if len(bases) > 1 else ""
    return f"A measured price rests on times of the repaired step. {replays}They assume:"


def show_fleet(answer: Mapping[str, Any]) -> None:
    """Print the predictions for jobs of several sizes to stdout."""
    console = Terminal()
    console.print(Text(f"a large job  {answer['program']}  (run {answer['run']})", style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bright_black")
    for name in (
        "workers",
        "efficiency",
        "speed",
        "a step",
        "waiting",
        "exchange",
        "fails every",
        "save every",
    ):
        table.add_column(name, justify="right")
    for job in answer["jobs"]:
        table.add_row(
            f"{job['workers']:,}",
            Text(f"{job['efficiency']:.0%}", style="bold"),
            times(job["efficiency"] * job["workers"]),
            duration(job["step_s"]),
            duration(job["waiting_s"]),
            duration(job["exchange_s"]),
            long_duration(job["mtbf_s"]),
            long_duration(job["interval_s"]),
        )
    console.print(table)
    console.print(Text("This is a simulation, not a measurement. It assumes:", style="yellow"))
    for line in answer["assumptions"]:
        console.print(Text(f"- {line}", style="bright_black"))


def _rates(row: Mapping[str, Any]) -> Text:
    parts = []
    if row.get("steps_per_s") is not None:
        parts.append(f"{row['steps_per_s']:,.1f} steps/s")
    if row.get("examples_per_s") is not None:
        parts.append(f"{row['examples_per_s']:,.0f} examples/s")
    return Text(" · ".join(parts), style="bright_black")
