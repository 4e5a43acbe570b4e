"""The ledger of a job's time on the terminal: goodput, its curve, the accounts, and why time was lost."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from stoker.doctor.report.terminal import Terminal
from stoker.goodput.accounts import MEANINGS, PRODUCTIVE
from stoker.goodput.ledger import JobLedger, Price
from stoker.units import duration, long_duration, printable, quantity

_BARS = " ▁▂▃▄▅▆▇█"
# A smaller share of the job than this is only in the JSON.
_SMALLEST = 0.001
_SHORTEST_S = 0.00005
_MOST_LINES = 5
_LONG_S = 300.0


def show(ledger: JobLedger, price: Price | None = None) -> None:
    """Print the ledger, also in money if there is a price."""
    console = Terminal()
    restarts = quantity(ledger.restarts, "restart")
    console.print(
        f"job {ledger.job}: {ledger.state}, {long_duration(ledger.wall_s)}, "
        f"{quantity(ledger.workers, 'worker')}, {restarts}"
    )
    _show_goodput(console, ledger, price)
    _show_accounts(console, ledger, price)
    _show_causes(console, ledger, price)
    _show_lines(console, ledger)
    if ledger.workers > 1:
        _show_workers(console, ledger)


def _show_goodput(console: Terminal, ledger: JobLedger, price: Price | None) -> None:
    if ledger.goodput is None:
        console.print("goodput: unknown; no worker reported a step (stoker.fit and stoker.Trainer do)")
        return
    lost = (
        f", {ledger.lost_steps:,} more {'was' if ledger.lost_steps == 1 else 'were'} lost"
        if ledger.lost_steps
        else ""
    )
    paid = f", {price.show(sum(ledger.worker_s.values()))} in all" if price else ""
    console.print(
        Text(f"goodput {ledger.goodput:.1%}: {quantity(ledger.steps, 'step')}{lost}{paid}", style="bold")
    )
    curve = "".join(_BARS[round(point.goodput * (len(_BARS) - 1))] for point in ledger.curve)
    console.print(f"  |{curve}|")


def _show_accounts(console: Terminal, ledger: JobLedger, price: Price | None) -> None:
    table = _begin_table(console, "account", price, "")
    for account, meaning in MEANINGS.items():
        seconds = ledger.accounts[account]
        if seconds >= _SHORTEST_S or account == PRODUCTIVE:
            row = [account, _time(seconds), _share(seconds, ledger)]
            row += [price.show(ledger.worker_s[account])] if price else []
            table.add_row(*row, meaning)
    console.print(table)


def _show_causes(console: Terminal, ledger: JobLedger, price: Price | None) -> None:
    table = _begin_table(console, "why time was lost", price, "times")
    paid_s = sum(ledger.worker_s.values())
    for cause in ledger.causes:
        if cause.seconds < _SMALLEST * ledger.wall_s:
            continue
        row = [printable(cause.what), _time(cause.seconds), _share(cause.seconds, ledger)]
        # A second of the job costs as much as all its workers in that second.
        row += [price.show(cause.seconds * paid_s / ledger.wall_s)] if price else []
        table.add_row(*row, str(cause.times) if cause.times > 1 else "")
    console.print(table)


def _show_lines(console: Terminal, ledger: JobLedger) -> None:
    found = [loss for loss in ledger.by_line if loss.seconds >= _SMALLEST * ledger.wall_s][:_MOST_LINES]
    if not found:
        return
    table = _begin_table(console, "line", None, "")
    for loss in found:
        table.add_row(Text(loss.line), _time(loss.seconds), _share(loss.seconds, ledger), loss.account)
    console.print(table)


def _show_workers(console: Terminal, ledger: JobLedger) -> None:
    """Print each worker's accounts, without those that are negligible for all workers."""
    least = _SMALLEST * ledger.wall_s
    shown = [name for name in MEANINGS if any(one[name] >= least for one in ledger.by_worker.values())]
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("worker")
    for name in shown:
        table.add_column(name, justify="right")
    for rank, spent in ledger.by_worker.items():
        table.add_row(str(rank), *(_time(spent[name]) for name in shown))
    console.print(table)


def _begin_table(console: Terminal, title: str, price: Price | None, last: str) -> Table:
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column(title, overflow="fold")
    for name in ("time", "share", *(("cost",) if price else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last, overflow="fold")
    return table


def _time(seconds: float) -> str:
    return duration(seconds) if seconds < _LONG_S else long_duration(seconds)


def _share(seconds: float, ledger: JobLedger) -> str:
    return f"{seconds / ledger.wall_s:.1%}" if ledger.wall_s else "-"
