"""Comparing two runs: the same numbers, other times, and what is no longer the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.doctor.fix.verify import FixOutcome, compare, describe_missing_seed, program_words, run
from stoker.errors import UsageError


def outcome(output: str, wall_s: float = 10.0, exit_code: int = 0) -> FixOutcome:
    return FixOutcome(exit_code, output, wall_s, 2.0, 0, None)


def test_times_may_differ_and_small_rounding_too() -> None:
    before = outcome("epoch 1 loss 0.53210 - 12s 40ms/step\ntook 3.1 seconds\n")
    after = outcome("epoch 1 loss 0.53211 - 5s 16ms/step\ntook 1.2 seconds\n", wall_s=6.0)
    verdict = compare(before, after)
    assert verdict.same
    assert verdict.speedup == pytest.approx(2.0)
    assert str(verdict) == "same results, 2.0x faster"


@pytest.mark.parametrize(
    ("output", "code", "reason"),
    [
        ("loss 0.6\n", 0, "0.5 became 0.6"),
        ("loss 0.5 0.4\n", 0, "1 printed number became 2"),
        ("loss nan\n", 0, "0.5 became nan"),
        ("loss 0.5\n", 1, "exit code 0 became 1"),
    ],
)
def test_other_results_are_noticed(output: str, code: int, reason: str) -> None:
    verdict = compare(outcome("loss 0.5\n"), outcome(output, exit_code=code))
    assert not verdict.keep
    assert reason in str(verdict)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("1\n1.2833\n", "1\n1.2796\n", "Numbers that agree before it: 1."),
        ("1\n2\n1.2833\n", "1\n2\n1.2796\n", "allow it with --tolerance 0.01"),
        # From the first number on, or by far.
        ("1.2833\n", "1.2796\n", ""),
        ("1\n1.2833\n", "1\n0.7\n", ""),
        ("1\n1.2833\n", "1\nnan\n", ""),
    ],
)
def test_what_may_be_rounding_can_be_allowed(before: str, after: str, hint: str) -> None:
    found = compare(outcome(before), outcome(after)).hint
    assert hint in found
    assert bool(found) is bool(hint)


def test_what_a_progress_bar_has_drawn_over_is_no_result(tmp_path: Path) -> None:
    """How often Keras redraws its bar depends on the time it takes, and so changes with every repair."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "for step in range(1, 9, int(sys.argv[1])):\n"
        "    sys.stdout.write(f'\\r\\x1b[1m{step}/8\\x1b[0m {step}ms/step - loss: 0.{step}\\b\\b')\n"
        "print('\\r\\x1b[1m8/8\\x1b[0m 1s 3ms/step - loss:', sys.argv[2])\n"
    )
    often, seldom, other = (
        run([str(program), *words]) for words in (["1", "0.5"], ["4", "0.5"], ["1", "0.7"])
    )
    assert compare(often, seldom).same
    assert compare(often, other).reason == "0.5 became 0.7"


def test_a_slower_program_is_not_kept() -> None:
    verdict = compare(outcome("1\n"), outcome("1\n", wall_s=20.0))
    assert verdict.same
    assert not verdict.keep


def test_steps_count_when_both_runs_have_as_many() -> None:
    before, after = FixOutcome(0, "", 10, 2, 100, 10.0), FixOutcome(0, "", 9, 2, 100, 30.0)
    assert compare(before, after).speedup == pytest.approx(3.0)


def test_program_words() -> None:
    assert program_words(["--", "python", "train.py", "-x"]) == ["train.py", "-x"]
    assert program_words(["train.py"]) == ["train.py"]
    with pytest.raises(UsageError):
        program_words(["--", "python3"])


def test_a_program_that_sets_a_seed_gets_no_advice_about_one(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    for line in ("tf.random.set_seed(1)", "keras.utils.set_random_seed(7)"):
        path.write_text(f"{line}\n", encoding="utf-8")
        assert describe_missing_seed([str(path)]) == ""
    path.write_text("model.fit(x, y)\n", encoding="utf-8")
    assert "train.py sets no seed" in describe_missing_seed([str(path), "--epochs", "1"])
    assert describe_missing_seed(["-m", "train"]) == ""
