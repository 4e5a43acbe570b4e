"""Edits: apart from each other, line ends kept, nothing broken."""

from __future__ import annotations

from stoker.doctor.check.rule import Edit, Fix
from stoker.doctor.fix.edits import apply, parses


def fix(*edits: Edit) -> Fix:
    return Fix("safe", edits)


def test_edits_of_several_fixes_are_applied_together() -> None:
    text = "a = 1\nb = 2\n"
    new, done = apply(text, [fix(Edit(2, 4, 2, 5, "3")), fix(Edit(1, 0, 1, 1, "x"))], parses)
    assert new == "x = 1\nb = 3\n"
    assert len(done) == 2


def test_overlapping_and_touching_fixes_wait() -> None:
    first, same, inside = (
        fix(Edit(1, 0, 1, 5, "y = 2")),
        fix(Edit(1, 5, 1, 5, "0")),
        fix(Edit(1, 2, 1, 3, "==")),
    )
    new, done = apply("a = 1\n", [first, same, inside], parses)
    assert new == "y = 2\n"
    assert done == [first]


def test_line_ends_are_kept() -> None:
    new, _ = apply("a = 1\r\nb = 2\r\n", [fix(Edit(2, 0, 2, 0, "c = 3\n"))], parses)
    assert new == "a = 1\r\nc = 3\r\nb = 2\r\n"


def test_a_fix_that_breaks_the_file_is_left_out() -> None:
    broken, fine = fix(Edit(1, 4, 1, 5, "(")), fix(Edit(2, 4, 2, 5, "5"))
    new, done = apply("a = 1\nb = 2\n", [broken, fine], parses)
    assert new == "a = 1\nb = 5\n"
    assert done == [fine]


def test_form_feeds_do_not_shift_lines() -> None:
    new, _ = apply("a = 1\n\x0cb = 2\nc = 3\n", [fix(Edit(3, 4, 3, 5, "4"))], parses)
    assert new.endswith("c = 4\n")
