"""What the tuner found, on the terminal: the rates, the tree of stages, what was changed, what was left and why."""

from __future__ import annotations

from stoker.report.words import rate
from stoker.tuning.figures import Report, StageFigures
from stoker.units import size

_WIDEST = 64


def text(report: Report) -> str:
    """The whole report."""
    parts = [headline(report)]
    if report.stages is not None:
        parts.append(_table(report.tuned or report.stages, "tuned" if report.tuned else "stage"))
    if report.tuned is not None and report.stages is not None:
        parts.insert(1, _table(report.stages, "as it was"))
    if report.changes:
        lines = [
            f"  {change.name}: {change.stage}" + _factor(change.before, change.after)
            for change in report.changes
        ]
        parts.append("\n".join(["Changed", *lines, _evidence(report)]))
    if report.left:
        lines = [f"  {left.name}: {left.stage}: {left.why}" for left in report.left]
        parts.append("\n".join(["Left alone", *lines]))
    return "\n\n".join(parts)


def headline(report: Report) -> str:
    """`The step takes 820/s, the pipeline gives 310/s and could give 5,900/s.`"""
    if report.before is None or report.after is None:
        return "The pipeline was not measured."
    said = f"the pipeline gives {_of(report, report.before)}"
    if report.tuned is not None:
        said += f" and could give {_of(report, report.after)} ({report.gain:.1f}x)"
    if report.step_per_s is not None:
        said = f"the step takes {_of(report, report.step_per_s)}, {said}"
    return f"{said[0].upper()}{said[1:]}."


def _of(report: Report, value: float) -> str:
    if report.rows_per_element is None:
        return f"{rate(value)} elements/s"
    return f"{rate(value)} batches/s ({rate(value * report.rows_per_element)} rows/s)"


def _factor(before: float | None, after: float | None) -> str:
    if not before or not after:
        return ""
    return f": {rate(before)} to {rate(after)}/s, {after / before:.1f}x"


def _evidence(report: Report) -> str:
    if report.compared:
        return f"  compared bit for bit: {report.compared} elements of each of two epochs, and each changed piece"
    return "  compared bit for bit: each changed piece (the pipeline as a whole does not repeat itself)"


def _table(top: StageFigures, title: str) -> str:
    rows = list(_rows(top, 0))
    width = min(_WIDEST, max(len(title), *(len(name) for name, _ in rows)))
    head = f"{title:<{width}}  {'makes/s':>9}  {'alone/s':>9}  {'core':>5}  {'element':>9}  calls"
    lines = [head]
    for name, stage in rows:
        shown = name if len(name) <= width else name[: width - 1] + "…"
        lines.append(
            f"{shown:<{width}}  {_rate(stage.elements_per_s):>9}  {_rate(stage.alone_per_s):>9}  "
            f"{_share(stage.core):>5}  {_size(stage.element_bytes):>9}  {stage.parallel_calls or ''}".rstrip()
        )
    return "\n".join(lines)


def _rows(stage: StageFigures, depth: int) -> list[tuple[str, StageFigures]]:
    found = [("  " * depth + stage.stage, stage)]
    for source in stage.inputs:
        # One below the other, as the program has them; only where several come together is there a step to the right.
        found += _rows(source, depth + (len(stage.inputs) > 1))
    return found


def _rate(value: float | None) -> str:
    return "" if value is None else rate(value)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _size(value: float | None) -> str:
    return "" if value is None else size(value)
