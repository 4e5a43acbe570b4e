"""The tuner's report on the terminal: rates, the tree of stages, what was changed, what was left and why."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.report.whatif import gain
from stoker.doctor.report.words import rate
from stoker.records import Finding, Record, TunedStage, TuningRow
from stoker.units import size

_WIDEST = 64


def text(report: TuningRow) -> str:
    """Return the whole report."""
    parts = [headline(report)]
    parts += [_table(stages, title) for title, stages in trees(report)]
    if report.changes:
        lines = [
            f"  {change.name}: {change.stage}{factor(change.before, change.after)}"
            for change in report.changes
        ]
        parts.append("\n".join(["Changed", *lines, f"  {evidence(report)}"]))
    if report.left:
        lines = [f"  {left.name}: {left.stage}: {left.why}" for left in report.left]
        parts.append("\n".join(["Left alone", *lines]))
    return "\n\n".join(parts)


def prices(record: Record, findings: Sequence[Finding]) -> list[str]:
    """Say what tuning gains: `In the run 20261115-2107: 2.4x faster (1.7-4.1) without input-starved train.py:12`."""
    return [
        f"In the run {record.id}: {gain(finding.what_if)} without {finding.kind} {finding.file}:{finding.line}, "
        f"{finding.what_if.basis}"
        for finding in findings
        if finding.what_if is not None
    ]


def headline(report: TuningRow) -> str:
    """Return the rates in words: `The step takes 820/s, the pipeline gives 310/s and could give 5,900/s.`"""
    if report.before is None or report.after is None:
        return "The pipeline was not measured."
    said = f"the pipeline gives {_describe_rate(report, report.before)}"
    if report.tuned:
        said += f" and could give {_describe_rate(report, report.after)} ({report.gain:.1f}x)"
    if report.step_per_s is not None:
        said = f"the step takes {_describe_rate(report, report.step_per_s)}, {said}"
    return f"{said[0].upper()}{said[1:]}."


def _describe_rate(report: TuningRow, value: float) -> str:
    if report.rows_per_element is None:
        return f"{rate(value)} elements/s"
    return f"{rate(value)} batches/s ({rate(value * report.rows_per_element)} rows/s)"


def factor(before: float | None, after: float | None) -> str:
    """Return `: 40.4 to 294/s, 7.3x`, or an empty string if the change was not timed."""
    if not before or not after:
        return ""
    return f": {rate(before)} to {rate(after)}/s, {after / before:.1f}x"


def evidence(report: TuningRow) -> str:
    """Say what was compared before a change was kept."""
    if report.compared:
        return (
            f"compared bit for bit: {report.compared} elements of each of two epochs, and each changed piece"
        )
    return "compared bit for bit: each changed piece (the pipeline as a whole does not repeat itself)"


HEAD = ("makes/s", "alone/s", "core", "element", "calls")


def trees(report: TuningRow) -> list[tuple[str, list[TunedStage]]]:
    """Return the stages before and after tuning, each with its title."""
    both = [("as it was" if report.tuned else "stage", report.stages), ("tuned", report.tuned)]
    return [(title, stages) for title, stages in both if stages]


def _table(stages: list[TunedStage], title: str) -> str:
    names = ["  " * stage.depth + stage.stage for stage in stages]
    width = min(_WIDEST, max(len(title), *(len(name) for name in names)))
    lines = [_line(title, list(HEAD), width)]
    for name, stage in zip(names, stages, strict=True):
        lines.append(_line(name if len(name) <= width else name[: width - 1] + "…", figures(stage), width))
    return "\n".join(lines)


def _line(name: str, cells: list[str], width: int) -> str:
    makes, alone, core, element, calls = cells
    return f"{name:<{width}}  {makes:>9}  {alone:>9}  {core:>5}  {element:>9}  {calls}".rstrip()


def figures(stage: TunedStage) -> list[str]:
    """Return the cells of a stage under `HEAD`."""
    return [
        "" if stage.elements_per_s is None else rate(stage.elements_per_s),
        "" if stage.alone_per_s is None else rate(stage.alone_per_s),
        "" if stage.core is None else f"{stage.core:.0%}",
        "" if stage.element_bytes is None else size(stage.element_bytes),
        stage.parallel_calls or "",
    ]
