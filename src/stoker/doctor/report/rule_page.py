"""A rule's page in Markdown: what the rule finds, why that is bad, an example, what to use instead."""

from __future__ import annotations

from stoker.doctor.check.rule import Rule


def page(rule: Rule) -> str:
    """Return the page of one rule. The rule's own first cases are its examples."""
    fix = "A fix is offered for some cases. " if rule.fixable else ""
    return "\n".join(
        (
            f"# {rule.slug} ({rule.code})",
            "",
            f"{rule.title}. Severity: {rule.severity}.",
            "",
            "## What it does",
            "",
            rule.what,
            "",
            "## Why is this bad?",
            "",
            rule.why,
            "",
            "## Example",
            "",
            "```python",
            rule.bad[0].code.rstrip("\n"),
            "```",
            "",
            "## Use instead",
            "",
            rule.remedy,
            "",
            "```python",
            rule.good[0].code.rstrip("\n"),
            "```",
            "",
            "## Fix safety",
            "",
            fix + rule.fix_safety,
            "",
            "## Known problems",
            "",
            rule.known_problems,
            "",
            f"Ignore it on one line with `# stoker: ignore[{rule.slug}]`.",
            "",
        )
    )


def _fix(rule: Rule) -> str:
    return "yes" if rule.fixable else ""


def index(rules: tuple[Rule, ...]) -> str:
    """Return the list of all rules."""
    lines = [
        "# Rules",
        "",
        "Generated from the rules themselves by `stoker explain --write docs/rules`.",
        "",
        "| code | kind | severity | fix | what |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {r.code} | [{r.slug}]({r.slug}.md) | {r.severity} | {_fix(r)} | {r.title} |" for r in rules]
    return "\n".join(lines) + "\n"
