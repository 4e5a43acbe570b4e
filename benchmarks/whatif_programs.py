"""Programs with several stalls, each repaired alone: what a run promises for a stall, and what repairing it gains.

A program marks each stall's line with `# stall: KIND`, and takes the kinds to repair as its arguments. With
`# device: software-gpu` in it, it runs there, and the truth is the time on the modelled device's clock.

All others run on one processor, and the truth is their processor time: with one processor that is what a run takes when
nobody else uses the machine, and others hardly change it. What a repair gains by working beside something else is not
seen that way; the examples (`whatif.py`) show it.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from whatif_residuals import Residual

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.stall import stalls
from stoker.doctor.stalls.shared.input_repair import InputRepair
from stoker.records import Finding, Record, WhatIf
from stoker.tracking.store import record_files

CLOCK = Path(__file__).parent / "programs" / "step_clock.py"
_INPUT = tuple(slug for slug, stall in stalls().items() if isinstance(stall.repair, InputRepair))
_RETRACE = ("retrace-python-arg", "retrace-shape", "tf-function-in-loop")
_EAGER = ("eager-train-step", "launch-bound")
# Names under which one and the same stall may be found.
_FAMILIES = (_INPUT, _RETRACE, _EAGER)
# Gains closer than this are the same gain: either may be repaired first.
_SAME = 1.05
# The same program, run again in turn with others, takes up to so many times the processor time of its last run.
SAME_PROGRAM = 1.05


@dataclass(frozen=True)
class Stalled:
    """A program, its stalls by kind, and their lines."""

    path: Path
    stalls: dict[str, list[int]]
    device: str

    @classmethod
    def read(cls, path: Path) -> Stalled:
        """What the program says of itself."""
        text = path.read_text(encoding="utf-8")
        stalls: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"# stall: (\S+)", line):
                stalls[name].append(number)
        return cls(path, dict(stalls), "software-gpu" if "# device: software-gpu" in text else "cpu")


@dataclass(frozen=True)
class Outcome:
    """One stall of one program, over all rounds; `predicted` is None where the run did not find it or has no price."""

    program: str
    stall: str
    predicted: float | None
    low: float
    high: float
    measured: float
    least: float
    most: float
    # By the clock on the wall, without the time in which others had the processor.
    wall: float
    # Of a step, what the stall was found to take.
    share: float = 0.0
    # How the price was come by.
    basis: str = ""

    @property
    def error(self) -> float | None:
        """Of the prediction against the truth."""
        return None if self.predicted is None else self.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the truth lies between the bounds, as far as it can be told; without a finding they are 1 and 1."""
        return self.low / SAME_PROGRAM <= self.measured <= self.high * SAME_PROGRAM


def run(program: Stalled, rounds: int, keep: Path, environment: dict[str, str]) -> None:
    """Run a program under Stoker once a round, and plainly with each stall repaired; leave all in `keep`."""
    name, device = program.path.stem, ["--device", program.device]
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            record = ["--json", str(keep / f"{name}.{number}.json")]
            stoker = [sys.executable, "-m", "stoker", "run", "--quiet", *record]
            command = [*stoker, *(device if program.device != "cpu" else []), str(program.path)]
            subprocess.run(pinned(command), cwd=scratch, env=environment, capture_output=True, check=True)
    variants = [word for stall in ["", *program.stalls] for word in ("--variant", stall)]
    clock = [sys.executable, str(CLOCK), *device, *variants, "--rounds", str(rounds), str(program.path)]
    done = subprocess.run(pinned(clock), env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(clock[1:])}\n{done.stderr[-2000:]}")
    (keep / f"{name}.steps").write_text(done.stdout)


def pinned(command: list[str]) -> list[str]:
    """The command on one processor."""
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]


def times(program: Stalled, keep: Path) -> dict[str, list[tuple[float, float, float]]]:
    """By variant: seconds undisturbed, wall and CPU of each round."""
    found: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for line in (keep / f"{program.path.stem}.steps").read_text().splitlines():
        if line.startswith("steps_s "):
            wall, _, undisturbed, cpu, *variant = line.split()[1:]
            found[" ".join(variant)].append((float(undisturbed), float(wall), float(cpu)))
    return found


def outcomes(program: Stalled, keep: Path) -> list[Outcome]:
    """What each stall was promised, and gained."""
    records = [record_files.read(path) for path in sorted(keep.glob(f"{program.path.stem}.[0-9]*.json"))]
    seconds = times(program, keep)
    made = []
    for stall, lines in program.stalls.items():
        told = [price for record in records if (price := promised(record, stall, lines)) is not None]
        ratios = [
            tuple(before / after if after else 0.0 for before, after in zip(stalled, repaired, strict=True))
            for stalled, repaired in zip(seconds[""], seconds[stall], strict=True)
        ]
        undisturbed, wall, cpu = (list(column) for column in zip(*ratios, strict=True))
        truth = cpu if program.device == "cpu" else wall
        if not statistics.median(truth):
            # Its repair is a call outside of the loop, which the clock at the steps does not see.
            print(
                f"{program.path.stem}, {stall}: the repaired steps take no time, so it is left out",
                file=sys.stderr,
            )
            continue
        bases = [price.basis or "modelled" for price in told]
        figures = [(price.speedup, price.low, price.high, price.share or 0.0) for price in told]
        predicted, low, high, share = (
            (statistics.median(c) for c in zip(*figures, strict=True)) if told else (None, 1.0, 1.0, 0.0)
        )
        made.append(
            Outcome(
                program.path.stem,
                stall,
                predicted,
                low,
                high,
                statistics.median(truth),
                min(truth),
                max(truth),
                statistics.median(undisturbed),
                share,
                statistics.mode(bases) if bases else "none",
            )
        )
    return made


def residuals(found: list[Outcome]) -> list[Residual]:
    """How far off they are."""
    return [
        Residual(o.stall.split("/")[0], o.program, o.share, o.predicted, o.measured)
        for o in found
        if o.predicted is not None
    ]


def promised(record: Record, stall: str, lines: list[int]) -> WhatIf | None:
    """The price of the findings that are this stall, together."""
    replayed = programs.of(record)
    found = findings_of(record, stall, lines)
    known = [f for f in found if replayed is not None and prices.is_known(f, replayed)]
    if replayed is None or not known:
        return None
    return prices.what_if(replayed, known)


def findings_of(record: Record, stall: str, lines: list[int]) -> list[Finding]:
    """By kind and line, be it one of the lines inside; by kind alone where the run names another line of the stall."""
    kind = stall.split("/")[0]
    family = next((names for names in _FAMILIES if kind in names), (kind,))
    related = [f for f in record.findings if f.kind in family]
    at_it = [f for f in related if {f.line, *(part["line"] for part in f.detail.get("parts", ()))} & {*lines}]
    return at_it or ([] if "/" in stall else related)


def first_is_best(found: list[Outcome]) -> bool | None:
    """Whether the stall with the highest price gains most; None where there is nothing to choose from."""
    if len(found) < 2:
        return None
    chosen = max(found, key=lambda o: o.predicted or 1.0)
    return chosen.measured * _SAME >= max(o.measured for o in found)


def table(found: list[Outcome]) -> str:
    """Markdown, largest error last."""
    lines = [
        "| program | stall | promised (bounds) | basis | measured (rounds) | by the clock | error | inside |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for o in sorted(found, key=lambda o: 9.0 if o.error is None else abs(o.error)):
        told = "none" if o.predicted is None else f"{o.predicted:.2f}x ({o.low:.2f}-{o.high:.2f})"
        error = "" if o.error is None else f"{o.error:+.0%}"
        lines.append(
            f"| {o.program} | {o.stall} | {told} | {o.basis} | {o.measured:.2f}x ({o.least:.2f}-{o.most:.2f}) | "
            f"{o.wall:.2f}x | {error} | {'yes' if o.inside else 'no'} |"
        )
    bases = sorted({o.basis for o in found if o.error is not None})
    by_basis = [f"{basis}: {summary([o for o in found if o.basis == basis])}" for basis in bases]
    return "\n".join([*lines, "", summary(found), *by_basis])


def summary(found: list[Outcome]) -> str:
    """The figures the targets are about."""
    errors = [abs(o.error) for o in found if o.error is not None]
    if not errors:
        return f"{len(found)} pairs, none with a price."
    by_program: defaultdict[str, list[Outcome]] = defaultdict(list)
    for o in found:
        by_program[o.program].append(o)
    ratios = [o.high / o.low for o in found if o.error is not None]
    firsts = [verdict for rows in by_program.values() if (verdict := first_is_best(rows)) is not None]
    return (
        f"{len(found)} pairs, {len(found) - len(errors)} without a price. Median error {statistics.median(errors):.0%} "
        f"(target 10 %), worst {max(errors):.0%} (target 50 %), inside the bounds {sum(o.inside for o in found)} of "
        f"{len(found)} (target 9 of 10), upper to lower bound {statistics.median(ratios):.2f} (median; target 1.3), "
        f"the highest price gains most in {sum(firsts)} of {len(firsts)} programs (target 9 of 10)."
    )
