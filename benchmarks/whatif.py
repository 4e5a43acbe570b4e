"""Predicted against measured: each example's price from one run, and the twin that really is repaired.

    make bench-whatif                                        # all examples and all sets of programs, with the plot
    python benchmarks/whatif.py --rounds 1 --only sync_in_loop demo
    python benchmarks/whatif.py --programs development       # whole programs, one stall repaired at a time
    python benchmarks/whatif.py --programs held_out          # those the model was not made on
    python benchmarks/whatif.py --programs unseen            # those written before any of them was priced by experiment
    python benchmarks/whatif.py --programs fresh             # those written without knowledge of the code
    python benchmarks/whatif.py --programs blind             # likewise, written later
    python benchmarks/whatif.py --programs all --busy 4      # all sets, beside four processes that never rest
    python benchmarks/whatif.py --records DIRECTORY          # price the records of an earlier --keep DIRECTORY again
    python benchmarks/whatif.py --records DIRECTORY --residuals     # how far off, kind by kind

A round runs the stalled program under `stoker run` (the prediction), and the stalled program and its twin plainly, each
with a clock at its steps and without Stoker (the truth). The prediction is the price of all the findings that the twin
repairs, together. Both are medians over the rounds; a round's runs follow each other, because a machine's speed drifts.
The error is of the prediction against the truth. `whatif_programs` has the whole programs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import whatif_programs
import whatif_residuals
from whatif_programs import SAME_PROGRAM

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.replay.program import Program
from stoker.records import Record
from stoker.tracking.store import record_files

HERE = Path(__file__).parent
CLOCK = HERE / "programs" / "step_clock.py"
EXAMPLES = HERE.parent / "examples"
# Pairs the model was not made on.
HELD_OUT = HERE / "programs" / "whatif"
# The sets of whole programs there, from the one the model was made on to the one nobody had seen.
SETS = ("development", "held_out", "unseen", "fresh", "blind")
# Their repair is one call.
ONE_CALL = ("launch_bound", "predict_in_loop")
# What makes sense on the modelled device as well: its clock is virtual, its host is real.
ON_DEVICE = ("numpy_feed_in_loop", "eager_train_step", "retrace_python_arg", "demo")
# The programs with several stalls: those their twins repair.
SEVERAL = {"demo": ("eager-train-step", "python-input-pipeline", "sync-in-loop", "numpy-feed-in-loop")}


@dataclass(frozen=True)
class Case:
    """A stalled program and its twin, on one device."""

    name: str
    device: str = "cpu"
    folder: Path = EXAMPLES

    @property
    def title(self) -> str:
        """As a row is called."""
        return self.name if self.device == "cpu" else f"{self.name} ({self.device})"

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the twin repairs: what the program is named after, or its several stalls."""
        return SEVERAL.get(self.name, (self.name.split("__")[0].replace("_", "-"),))

    def program(self, repaired: bool = False) -> str:
        """The path of the stalled program, or of its twin."""
        return str(self.folder / f"{self.name}{'_fixed' if repaired else ''}.py")


@dataclass(frozen=True)
class Outcome:
    """One case, over all rounds."""

    case: Case
    predicted: float
    low: float
    high: float
    measured: float
    # The smallest and the largest of the rounds.
    least: float
    most: float
    # Of a step, what was found to be lost.
    share: float

    @property
    def error(self) -> float:
        """Of the prediction against the truth."""
        return self.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the truth lies between the bounds, as far as it can be told."""
        return self.low / SAME_PROGRAM <= self.measured <= self.high * SAME_PROGRAM


def cases() -> list[Case]:
    """All pairs there are."""
    made = [Case(path.stem.removesuffix("_fixed")) for path in sorted(EXAMPLES.glob("*_fixed.py"))]
    made += [Case(name, "software-gpu") for name in ON_DEVICE]
    return made + [
        Case(p.stem.removesuffix("_fixed"), folder=HELD_OUT) for p in sorted(HELD_OUT.glob("*_fixed.py"))
    ]


def predict(case: Case, path: Path) -> None:
    """Run the stalled program under Stoker; the record is left at `path`."""
    device = [] if case.device == "cpu" else ["--device", case.device]
    command = [sys.executable, "-m", "stoker", "run", "--quiet", "--json", str(path), *device, case.program()]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(command, cwd=scratch, env=_environment(), capture_output=True, check=True)


def clock(case: Case, repaired: bool) -> float:
    """Seconds of the stepping phase, plainly."""
    twice = ["--twice"] if repaired and case.name in ONE_CALL else []
    return clocked([sys.executable, str(CLOCK), "--device", case.device, *twice, case.program(repaired)])


def clocked(command: list[str]) -> float:
    """Run the clock; what it says."""
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("steps_s "):
            return float(line.split()[1])
    raise SystemExit(f"failed: {' '.join(command[1:])}\n{done.stderr[-2000:]}")


def _environment() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}


def run_rounds(case: Case, rounds: int, keep: Path) -> None:
    """Run a case and leave its records and its times in `keep`."""
    times = []
    for number in range(rounds):
        predict(case, keep / f"{case.title}.{number}.json")
        order = (False, True) if number % 2 == 0 else (True, False)
        seconds = {repaired: clock(case, repaired) for repaired in order}
        times.append([seconds[False], seconds[True]])
        print(
            f"  {case.title}: {seconds[False]:.3f} s, repaired {seconds[True]:.3f} s",
            file=sys.stderr,
            flush=True,
        )
    (keep / f"{case.title}.times").write_text(json.dumps(times))


def price(record: Record, case: Case) -> tuple[float, float, float, float]:
    """What the record predicts for the twin: the speed-up, its bounds, and the share of what is repaired."""
    answer = prices.what_if(_program(record), [f for f in record.findings if f.kind in case.kinds])
    return answer.speedup, answer.low, answer.high, answer.share or 0.0


def _program(record: Record) -> Program:
    program = programs.of(record)
    if program is None:
        raise SystemExit(f"the run of {record.program} has no spans to replay")
    return program


def outcome(case: Case, keep: Path) -> Outcome:
    """What the records of a case say now, against its times."""
    told = [price(record_files.read(path), case) for path in sorted(keep.glob(f"{case.title}.[0-9]*.json"))]
    times = json.loads((keep / f"{case.title}.times").read_text())
    ratios = [before / after for before, after in times]
    predicted, low, high, share = (statistics.median(column) for column in zip(*told, strict=True))
    measured = statistics.median(ratios)
    return Outcome(case, predicted, low, high, measured, min(ratios), max(ratios), share)


def residuals(outcomes: list[Outcome]) -> list[whatif_residuals.Residual]:
    """How far off the examples with one stall are."""
    return [
        whatif_residuals.Residual(o.case.kinds[0], o.case.title, o.share, o.predicted, o.measured)
        for o in outcomes
        if len(o.case.kinds) == 1
    ]


def first_repair(rounds: int, keep: Path) -> str:
    """A program with two stalls: whether the one to repair first, as predicted, is the one that gains more."""
    program, kinds = str(HELD_OUT / "two_stalls.py"), ("numpy-feed-in-loop", "checkpoint-in-loop")
    predict(Case("two_stalls", folder=HELD_OUT), keep / "two_stalls.json")
    record = prices.price_record(record_files.read(keep / "two_stalls.json"))
    order = [place.kind for place in (record.what_if.order if record.what_if else []) if place.kind in kinds]
    repairs: dict[str, list[str]] = {"": [], **{kind: [kind] for kind in kinds}, "both": list(kinds)}
    seconds: dict[str, list[float]] = {name: [] for name in repairs}
    for _ in range(rounds):
        for name, chosen in repairs.items():
            words = [word for kind in chosen for word in ("--repair", kind)]
            seconds[name].append(clocked([sys.executable, str(CLOCK), program, *words]))
    gains = {name: min(seconds[""]) / min(times) for name, times in seconds.items() if name}
    best = max(kinds, key=lambda kind: gains[kind])
    lines = ["| repaired in two_stalls | predicted | measured |", "|---|---|---|"]
    for name, chosen in repairs.items():
        if name:
            told = prices.what_if(_program(record), [f for f in record.findings if f.kind in chosen])
            lines.append(
                f"| {name} | {told.speedup:.2f}x ({told.low:.2f}-{told.high:.2f}) | {gains[name]:.2f}x |"
            )
    verdict = "as predicted" if order[0] == best else "not as predicted"
    return "\n".join(lines) + f"\n\nTo repair first: predicted {order[0]}; gains most: {best}, {verdict}."


def table(outcomes: list[Outcome]) -> str:
    """Markdown, largest error last."""
    lines = ["| program | predicted (bounds) | measured (rounds) | error | inside |", "|---|---|---|---|---|"]
    for o in sorted(outcomes, key=lambda o: abs(o.error)):
        lines.append(
            f"| {o.case.title} | {o.predicted:.2f}x ({o.low:.2f}-{o.high:.2f}) | {o.measured:.2f}x "
            f"({o.least:.2f}-{o.most:.2f}) | {o.error:+.0%} | {'yes' if o.inside else 'no'} |"
        )
    errors = [abs(o.error) for o in outcomes]
    inside = sum(o.inside for o in outcomes)
    lines.append(
        f"\nMedian error {statistics.median(errors):.0%} (target 10 %), worst {max(errors):.0%} (target 30 %), "
        f"inside the bounds {inside} of {len(outcomes)} (target 9 of 10), "
        f"upper to lower bound {statistics.median(o.high / o.low for o in outcomes):.2f} (median; target 1.3)."
    )
    return "\n".join(lines)


def plot(outcomes: list[Outcome], path: str) -> None:
    """Predicted over measured, both logarithmic; on the diagonal the two agree."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 6))
    span = [1, 1.2 * max(max(o.measured, o.high) for o in outcomes)]
    axes.plot(span, span, color="grey", linewidth=1)
    axes.fill_between(span, [0.7 * s for s in span], [1.3 * s for s in span], color="grey", alpha=0.12)
    for o in outcomes:
        bars = [[max(0.0, o.predicted - o.low)], [max(0.0, o.high - o.predicted)]]
        axes.errorbar(
            o.measured, o.predicted, yerr=bars, fmt="o", color="C0" if o.inside else "C3", capsize=2
        )
        axes.annotate(
            o.case.title, (o.measured, o.predicted), xytext=(4, 3), textcoords="offset points", size=6
        )
    axes.set(xscale="log", yscale="log", xlabel="measured speed-up", ylabel="predicted speed-up")
    axes.set_title("The price of an example, predicted and measured (grey: within 30 %)", size=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def whole_programs(
    chosen: str, only: list[str] | None, rounds: int, keep: Path, run: bool
) -> list[whatif_programs.Outcome]:
    """Programs with several stalls, each repaired alone."""
    found: list[whatif_programs.Outcome] = []
    for path in sorted((HELD_OUT / chosen).glob("*.py")):
        program = whatif_programs.Stalled.read(path)
        if only and path.stem not in only:
            continue
        if run:
            whatif_programs.run(program, rounds, keep, _environment())
        if (keep / f"{path.stem}.steps").exists():
            found += whatif_programs.outcomes(program, keep)
            print(whatif_programs.summary(found), file=sys.stderr, flush=True)
    return found


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that never rest, on all processors."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def report_programs(args: argparse.Namespace) -> None:
    """Run whole programs, of one set or of all, and print what came out."""
    found: list[whatif_programs.Outcome] = []
    for name in SETS if args.programs == "all" else [args.programs]:
        with tempfile.TemporaryDirectory() as scratch:
            keep = Path(args.records or args.keep or scratch).resolve() / name
            keep.mkdir(parents=True, exist_ok=True)
            rows = whole_programs(name, args.only, args.rounds, keep, not args.records)
        if rows:
            print(f"## {name}\n\n{whatif_programs.table(rows)}\n", flush=True)
        found += rows
    if args.programs == "all" and found:
        print(f"All sets: {whatif_programs.summary(found)}")
    if args.residuals:
        print("\n" + whatif_residuals.table(whatif_programs.residuals(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs alone")
    parser.add_argument("--keep", metavar="DIRECTORY", help="leave records and times there")
    parser.add_argument("--records", metavar="DIRECTORY", help="run nothing: price what --keep left again")
    parser.add_argument("--residuals", action="store_true", help="also print how far off, kind by kind")
    parser.add_argument("--order", action="store_true", help="also repair each of two stalls by itself")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw predicted over measured there")
    parser.add_argument("--programs", choices=[*SETS, "all"], help="whole programs instead of examples")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="beside N processes that never rest")
    args = parser.parse_args()
    with busy_processes(args.busy):
        if args.programs:
            report_programs(args)
        else:
            report_examples(args)


def report_examples(args: argparse.Namespace) -> None:
    """Run the examples and their twins, and print what came out."""
    chosen = [case for case in cases() if not args.only or case.title in args.only or case.name in args.only]
    with tempfile.TemporaryDirectory() as scratch:
        keep = Path(args.records or args.keep or scratch).resolve()
        keep.mkdir(parents=True, exist_ok=True)
        if not args.records:
            for case in chosen:
                run_rounds(case, args.rounds, keep)
        outcomes = [outcome(case, keep) for case in chosen if (keep / f"{case.title}.times").exists()]
        if outcomes:
            print(table(outcomes), flush=True)
        if args.residuals:
            print("\n" + whatif_residuals.table(residuals(outcomes)))
        if args.order:
            print("\n" + first_repair(args.rounds, keep))
    if args.plot and outcomes:
        plot(outcomes, args.plot)


if __name__ == "__main__":
    main()
