"""Safe means proven: each safe fix is run before and after, on plain programs and on traps.

A file of `safe/` is one program, named `<kind>.<what it is about>.<outcome>.txt`; it leaves what it computed in
`result`. In a `fixed` program the kind's safe fix applies, and the repaired program must compute the same bits. A
`kept` program is a trap: there the same edit would change what is computed, so none may be offered as safe.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.doctor.check.registry import all_rules, check
from stoker.doctor.check.rule import Fix
from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.module import parse
from stoker.doctor.check.source.project import Project
from stoker.doctor.fix.edits import apply, parses

keras = pytest.importorskip("keras")
PROGRAMS = sorted((Path(__file__).parent / "safe").glob("*.txt"))


def safe_fixes(text: str) -> dict[str, list[Fix]]:
    """The safe fixes offered for a program, by kind."""
    found: dict[str, list[Fix]] = {}
    for problem in check(analyse(parse("program.py", text), Project())):
        if problem.fix is not None and problem.fix.safety == "safe":
            found.setdefault(problem.kind, []).append(problem.fix)
    return found


def repaired(text: str) -> str:
    """A program with all of its safe fixes, of whatever kind."""
    for _ in range(4):
        new, done = apply(text, [fix for fixes in safe_fixes(text).values() for fix in fixes], parses)
        if not done:
            return text
        text = new
    raise AssertionError("the fixes come to no end")


class LossScaleOfKeras2(keras.mixed_precision.LossScaleOptimizer):  # type: ignore[name-defined]
    """What the removed calls did: gradients are unscaled by them, and applied as they come."""

    def get_scaled_loss(self, loss: Any) -> Any:
        return loss * self.initial_scale

    def get_unscaled_gradients(self, grads: list[Any]) -> list[Any]:
        return [g / self.initial_scale for g in grads]

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        self.inner_optimizer.apply(grads, trainable_variables)


def outcome(text: str) -> list[np.ndarray[Any, Any]]:
    """Run a program and return what it left in `result`."""
    keras.utils.set_random_seed(5)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "program.py", "exec"), names)
    import tensorflow as tf

    return [np.asarray(value) for value in tf.nest.flatten(names["result"])]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_safe_fix_leaves_the_results_as_they_were(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, _, expected = program.stem.split(".")
    text = program.read_text(encoding="utf-8")
    assert (kind in safe_fixes(text)) == (expected == "fixed")
    after = repaired(text)
    assert (after != text) == (expected == "fixed")
    if expected == "fixed":
        new = outcome(after)
        monkeypatch.setattr(keras.mixed_precision, "LossScaleOptimizer", LossScaleOfKeras2)
        old = outcome(text)
        assert len(new) == len(old) > 0
        for one, other in zip(old, new, strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_kind_with_a_safe_fix_is_proven() -> None:
    offered = {
        rule.slug
        for rule in all_rules()
        for case in rule.bad
        for _ in safe_fixes(case.code).get(rule.slug, ())
    }
    for outcome_of in ("fixed", "kept"):
        assert {p.stem.split(".")[0] for p in PROGRAMS if p.stem.endswith(f".{outcome_of}")} >= offered
    assert offered == {"legacy-loss-scaling", "missing-prefetch", "numpy-feed-in-loop"}
