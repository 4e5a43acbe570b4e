"""The ledger on the terminal: accounts as bars, then findings, costliest first."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stoker.doctor.report.memory import failure_lines, memory_lines, render_memory
from stoker.doctor.report.terminal import Terminal
from stoker.doctor.report.whatif import gain
from stoker.doctor.report.words import (
    MEANINGS,
    MINOR,
    evidence,
    list_notes,
    lost_outside_steps_s,
    rate,
    reader,
    short_path,
)
from stoker.doctor.stall import find_stall
from stoker.records import Finding, Record, RepairPlace, WhatIf, WorkerRow
from stoker.units import duration, quantity, size, times

_COLOURS = {
    "startup": "bright_black",
    "trace": "magenta",
    "input": "yellow",
    "transfer": "cyan",
    "sync": "red",
    "compute": "green",
    "dispatch": "blue",
    "communication": "bright_red",
    "checkpoint": "bright_magenta",
    "teardown": "bright_cyan",
    "python": "bright_yellow",
}
_MAX_SHOWN = 10
_MAX_PLACES = 4
_MAX_IN_ORDER = 3


def show(record: Record, path: Path, to_stdout: bool = False) -> None:
    """Print a record, to stderr unless the user asked for this record by itself."""
    console = Terminal(stderr=not to_stdout, soft_wrap=False)
    console.print(render(record, path, console.width))


def show_memory(record: Record) -> None:
    """Print the owners of the device's memory to stderr."""
    console = Terminal(stderr=True, soft_wrap=False)
    console.print(render_memory(record, console.width))


def show_finding(finding: Finding) -> None:
    """Print a finding as one line to stderr, while the program runs."""
    Terminal(stderr=True).print(
        Text(f"stoker: {finding.kind} at {finding.file}:{finding.line}: {finding.title}. {finding.remedy}")
    )


def render(record: Record, path: Path, width: int) -> RenderableType:
    """Render the whole report."""
    parts: list[RenderableType] = [Text(), _headline(record)]
    if record.accounts and record.wall_s:
        parts += [Text(), _accounts(record, width)]
    if record.tables.workers:
        parts += [Text(), _workers(record.tables.workers)]
    parts += [Text(), *_findings(record, width)]
    parts += _memory(record, width)
    parts += [Text(f"note: {note}", style="yellow") for note in list_notes(record)]
    parts.append(Text(f"record: {path}", style="bright_black"))
    return Group(*parts)


def _memory(record: Record, width: int) -> list[RenderableType]:
    """Render one line for each device, or all owners if memory ran out."""
    failure = failure_lines(record)
    if not failure:
        return [Text(line, style="bright_black") for line in memory_lines(record)]
    return [
        *(Text(line, style="bold red" if not n else "") for n, line in enumerate(failure)),
        Text(),
        render_memory(record, width),
    ]


def _headline(record: Record) -> Text:
    facts = [f"{record.wall_s:.1f} s"]
    if record.steps:
        facts.append(quantity(record.steps, "step"))
    if record.steps_per_s is not None:
        facts.append(f"{rate(record.steps_per_s)} steps/s")
    if record.examples_per_s is not None:
        facts.append(f"{rate(record.examples_per_s)} examples/s")
    if record.device.busy is not None:
        facts.append(f"{record.device.kind} {record.device.busy:.0%} busy")
    if record.state == "running":
        facts.append("did not end; this is its last save")
    elif record.exit_code:
        facts.append(f"exit code {record.exit_code}")
    line = Text().append(f"stoker  {shlex.join([record.program, *record.argv])}", style="bold")
    # A line may break between two facts, but not inside one.
    return line.append("  " + " · ".join(fact.replace(" ", "\u00a0") for fact in facts))


def _accounts(record: Record, width: int) -> Table:
    """Render the accounts as bars, to the scale of the run, longest first."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    table.add_column(style="bright_black", no_wrap=True)
    room = max(10, min(40, width - 64))
    for name, spent in sorted(record.accounts.items(), key=lambda item: -item[1]):
        share = spent / record.wall_s
        if share < 0.0005:
            continue
        bar = Text("█" * max(1, round(share * room)) if share >= 0.01 else "▏", style=_COLOURS.get(name, ""))
        table.add_row(name, f"{spent:.2f} s", f"{share:.1%}", bar, MEANINGS.get(name, ""))
    return table


def _workers(rows: list[WorkerRow]) -> Table:
    """Render the workers of a job, with the time of each for exchanging and for waiting for the others."""
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bright_black")
    for name in ("worker", "steps", "steps/s", "waiting for peers", "exchange", "most on"):
        table.add_column(name, justify="right")
    for row in rows:
        own = {name: spent for name, spent in row.accounts.items() if name != "communication"}
        most = max(own, key=lambda name: own[name], default="")
        table.add_row(
            str(row.rank),
            f"{row.steps:,}",
            "?" if row.steps_per_s is None else rate(row.steps_per_s),
            duration(row.waiting_s),
            duration(row.exchange_s),
            f"{most} {duration(own[most])}" if most else "",
        )
    return table


def _findings(record: Record, width: int) -> list[RenderableType]:
    if not record.accounts:
        return []
    if not record.findings:
        return _say_nothing_was_found(record)
    shown = [f for f in record.findings if not _is_minor(f, record)]
    parts: list[RenderableType] = []
    if not shown:
        parts.append(Text("Nothing here costs 2 % or more.", style="green"))
    for number, finding in enumerate(shown[:_MAX_SHOWN], 1):
        parts.append(_finding(number, finding, record, width))
    hidden = len(shown) - _MAX_SHOWN
    if hidden > 0:
        parts.append(Text(f"... and {hidden} more in the record", style="bright_black"))
    minor = [f for f in record.findings if _is_minor(f, record)]
    if minor:
        parts += [*_fold(minor, record), Text()]
    if record.what_if and record.what_if.all and record.what_if.all.speedup >= 1 + MINOR and shown:
        parts += [_describe_all_repairs(record.what_if.all, record.what_if.order, record), Text()]
    return parts


def _say_nothing_was_found(record: Record) -> list[RenderableType]:
    """Say that nothing was found. This is praise only for a program that used TensorFlow and ran to its end."""
    if "tensorflow" not in record.versions:
        # A note already says that there was nothing to measure.
        return []
    if record.exit_code or record.state == "running":
        return [Text("Nothing was found before the program ended early.")]
    return [Text("Nothing stalls this program.", style="green")]


def _is_minor(finding: Finding, record: Record) -> bool:
    """Return whether a finding is worth under 2 %, by its price or else by the time it lost."""
    if finding.what_if is not None:
        return finding.what_if.speedup < 1 + MINOR
    if finding.bytes_saved is not None:
        return False
    return (finding.lost_s or 0) < MINOR * record.wall_s


def _fold(findings: list[Finding], record: Record) -> list[RenderableType]:
    """Render minor findings, one line for each kind: where they are, and that they cost little or do other harm."""
    lines: list[RenderableType] = []
    for kind in dict.fromkeys(f.kind for f in findings):
        alike = [f for f in findings if f.kind == kind]
        stall = find_stall(kind)
        spoils = stall is not None and stall.spoils_results
        worth = f"no time, but: {alike[0].title}" if spoils else _describe_little(alike, record)
        text = Text("    ").append(kind, style="bold").append(f"  {worth}  ", style="bright_black")
        text.append(", ".join(_short_place(f) for f in alike[:_MAX_PLACES]), style="cyan")
        if len(alike) > _MAX_PLACES:
            text.append(f" and {len(alike) - _MAX_PLACES} more", style="bright_black")
        lines.append(text)
    return lines


def _describe_little(findings: list[Finding], record: Record) -> str:
    """Say that findings cost little. Prices cover only the steps, so a loss outside them is given in seconds."""
    lost_s = sum(lost_outside_steps_s(finding, record) for finding in findings)
    if lost_s < MINOR * record.wall_s:
        return "under 2 %"
    return f"under 2 % of steps, but {duration(lost_s)} outside them"


def _short_place(finding: Finding) -> str:
    call = reader(finding)
    return f"{short_path(finding.file)}:{finding.line}" + (f" {call}" if call else "")


def _describe_all_repairs(all_of_them: WhatIf, order: list[RepairPlace], record: Record) -> Text:
    """Say what all repairs would gain and which to make first, without those that add nothing to the others."""
    line = Text("All repaired: ", style="bold").append(gain(all_of_them), style="bold green")
    before = 1.0
    steps: list[str] = []
    for place in order[:_MAX_IN_ORDER]:
        if place.together < before * (1 + MINOR):
            break
        before = place.together
        gained = f"together {times(before)}" if steps else times(before)
        steps.append(f"{place.kind} {short_path(place.file)}:{place.line} ({gained})")
    if steps:
        line.append("  first " + ", then ".join(steps))
    word = "measured" if all_of_them.basis == "measured" else "modelled"
    run = _describe_repaired_run(all_of_them.speedup, record)
    line.append(f"  ({word}, for steps after the first{run}; details: `stoker whatif`)", style="bright_black")
    return line


def _describe_repaired_run(speedup: float, record: Record) -> str:
    """Say how long the whole run would take: quicker steps leave start-up and tracing as they are."""
    phase = record.tables.stepping_phase
    if phase is None:
        return ""
    saved_s = min(phase.seconds, record.wall_s) * (1 - 1 / speedup)
    return f": this run {record.wall_s:.1f} s → {record.wall_s - saved_s:.1f} s"


def _place(finding: Finding, room: int) -> tuple[str, str]:
    """Return file and line, and the function, shortened so that the price fits on the same line."""
    function = f" in {finding.function}" if finding.function not in ("", "<module>") else ""
    short, name = short_path(finding.file), finding.file.replace("\\", "/").rsplit("/", 1)[-1]
    for file, where in ((short, function), (short, ""), (name, "")):
        if len(f"  {file}:{finding.line}{where}") <= room:
            break
    return f"{file}:{finding.line}", where


def _cost(finding: Finding, share: float, without: bool = True) -> Text:
    """Return what a finding costs; `without` also says what the price is a price of, if there is room."""
    if finding.what_if is not None:
        cost = Text(f"  {gain(finding.what_if)}{' without it' if without else ''}", style="bold")
        basis = finding.what_if.basis
        return cost.append(f", {basis}", style="not bold bright_black") if basis else cost
    if finding.bytes_saved is not None:
        return Text(f"  {size(finding.bytes_saved)} of memory", style="bold")
    return Text(f"  {duration(finding.lost_s)} lost, {share:.1%} of the run")


def _finding(number: int, finding: Finding, record: Record, width: int) -> RenderableType:
    share = (finding.lost_s or 0) / record.wall_s if record.wall_s else 0.0
    minor = share < MINOR and finding.bytes_saved is None
    head = Text(f"{number:>2}  ")
    head.append(f"{finding.kind}", style="bold" if minor else "bold red")
    cost = _cost(finding, share)
    place, function = _place(finding, width - len(head) - len(cost))
    if finding.what_if and len(head) + len(f"  {place}") + len(cost) > width:
        cost = _cost(finding, share, without=False)
        place, function = _place(finding, width - len(head) - len(cost))
    head.append(f"  {place}", style="cyan").append(function, style="bright_black").append(cost)
    lines: list[RenderableType] = []
    if finding.source:
        lines.append(Text(finding.source, style="italic", no_wrap=True, overflow="ellipsis"))
    proof = evidence(finding)
    if (outside_s := lost_outside_steps_s(finding, record)) >= max(
        MINOR * record.wall_s, (finding.lost_s or 0) / 2
    ):
        proof += f" · {duration(outside_s)} of it outside the steps; the price covers only the steps"
    lines.append(Text(proof, style="bright_black"))
    lines.append(Text("→ " + finding.remedy, style="default" if minor else "green"))
    return Group(head, Padding(Group(*lines), (0, 0, 1, 4), expand=False))
