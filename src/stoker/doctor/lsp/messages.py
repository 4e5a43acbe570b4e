"""Findings as messages of the protocol: diagnostics, code actions, hovers."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types
from pygls.workspace import TextDocument

from stoker.doctor.check.rule import Edit, Fix, Problem, Rule
from stoker.doctor.fix.edits import apply, parses
from stoker.doctor.lsp.documents import CheckedText, PricedProblem
from stoker.doctor.report.line_prices import PriceOfLine, describe_gain
from stoker.doctor.stall import find_stall

SOURCE = "stoker"
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.{SOURCE}"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def diagnose(document: TextDocument, found: PricedProblem) -> types.Diagnostic:
    """Return a finding as a diagnostic, with its price if a run has one."""
    problem = found.problem
    price = f" [{describe_price(found.price)}]" if found.price is not None else ""
    return types.Diagnostic(
        range=_range_of(document, problem),
        message=f"{problem.message}{price}",
        severity=_SEVERITIES[problem.severity],
        code=problem.code,
        source=f"{SOURCE} {problem.kind}",
    )


def describe_price(price: PriceOfLine) -> str:
    """Return a price in words: `3.1x faster without it, measured in run 20261115-210754-3fa91c07`."""
    how = "modelled from" if price.basis == "modelled" else "measured in"
    return f"{describe_gain(price.speedup)}, {how} run {price.run_id}"


def explain(found: PricedProblem) -> str:
    """Return a finding in Markdown: what it is, what it costs, why, and what to do."""
    problem = found.problem
    stall = find_stall(problem.kind)
    parts = [f"**{problem.kind}** ({problem.code})" + (f": {stall.title}." if stall is not None else "")]
    parts.append(problem.message)
    if found.price is not None:
        parts.append(f"**{describe_price(found.price)}**")
    if stall is not None:
        why = [stall.why] if isinstance(stall, Rule) else []
        parts += [*why, f"*{stall.remedy}*", f"For more, run `stoker explain {problem.kind}`."]
    return "\n\n".join(parts)


def offer_actions(
    document: TextDocument, checked: CheckedText, lines: range, kinds: Sequence[str] | None
) -> list[types.CodeAction]:
    """Return the actions for the findings on these lines: their fixes, and comments that ignore them."""
    actions = []
    if _is_wanted(types.CodeActionKind.QuickFix.value, kinds):
        for found in checked.problems:
            problem = found.problem
            if problem.line - 1 in lines or lines.start in range(problem.line - 1, problem.end_line):
                actions += _quick_fixes(document, found, checked.text)
    if _is_wanted(FIX_ALL, kinds):
        actions += _fix_all(document, checked)
    return actions


def _is_wanted(kind: str, asked: Sequence[str] | None) -> bool:
    """Return whether an editor asks for this kind of action or a more general one; None asks for all."""
    return asked is None or any(kind == one or kind.startswith(f"{one}.") for one in asked)


def _quick_fixes(document: TextDocument, found: PricedProblem, text: str) -> list[types.CodeAction]:
    problem = found.problem
    offers = [] if problem.fix is None else [(problem.fix, problem.fix.safety == "safe")]
    offers += [(fix, False) for fix in [_ignore(problem, text)] if apply(text, [fix], parses)[1]]
    return [
        types.CodeAction(
            title=_title(fix),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnose(document, found)],
            edit=_as_edit(document, fix.edits),
            is_preferred=preferred or None,
        )
        for fix, preferred in offers
    ]


def _title(fix: Fix) -> str:
    return fix.message if fix.safety == "safe" else f"{fix.message} (may change results)"


def _ignore(problem: Problem, text: str) -> Fix:
    """Return a fix that adds an ignore comment on a line of its own above the finding."""
    line = text.splitlines()[problem.line - 1] if problem.line <= len(text.splitlines()) else ""
    indent = line[: len(line) - len(line.lstrip())]
    comment = f"{indent}# stoker: ignore[{problem.kind}]\n"
    edit = Edit(problem.line, 0, problem.line, 0, comment)
    return Fix("safe", (edit,), f"Ignore {problem.kind} on this line")


def _fix_all(document: TextDocument, checked: CheckedText) -> list[types.CodeAction]:
    fixes = [found.problem.fix for found in checked.problems]
    safe = [fix for fix in fixes if fix is not None and fix.safety == "safe"]
    _, applied = apply(checked.text, safe, parses)
    if not applied:
        return []
    edits = [edit for fix in applied for edit in fix.edits]
    title = "Apply all of Stoker's safe fixes"
    return [types.CodeAction(title=title, kind=FIX_ALL, edit=_as_edit(document, edits))]


def _as_edit(document: TextDocument, edits: Sequence[Edit]) -> types.WorkspaceEdit:
    changes = [
        types.TextEdit(_range(document, e.line, e.column, e.end_line, e.end_column), e.text) for e in edits
    ]
    version = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(text_document=version, edits=list(changes))]
    )


def _range_of(document: TextDocument, problem: Problem) -> types.Range:
    end_column = problem.end_column - 1 if problem.end_column else problem.column
    return _range(document, problem.line, problem.column - 1, problem.end_line, end_column)


def _range(document: TextDocument, line: int, column: int, end_line: int, end_column: int) -> types.Range:
    """Convert lines counted from 1 and columns in characters to the units in which the editor counts."""
    start, end = types.Position(line - 1, column), types.Position(end_line - 1, end_column)
    return document.position_codec.range_to_client_units(document.lines, types.Range(start, end))
