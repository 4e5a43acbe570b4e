"""Nothing crashes: on the installed sources of Keras and TensorFlow, and on sources mutated at random."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
from pathlib import Path

import pytest

from stoker.doctor.check.checker import check_paths
from stoker.doctor.check.registry import all_rules, check
from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.files import discover
from stoker.doctor.check.source.module import SourceError, parse
from stoker.doctor.check.source.project import Project
from stoker.doctor.fix.edits import apply, parses
from tests.doctor.accuracy.measure import PROGRAMS, labelled, split

SEEDS = range(12)
WORDS = (
    "tf",
    "for",
    "x",
    "(",
    ")",
    ":",
    "\n",
    "    ",
    "model",
    ".numpy()",
    "= 0",
    "[0]",
    "@tf.function\n",
    "yield",
    "*",
)


def sources() -> list[str]:
    programs = [
        labelled(text)[0]
        for path in sorted(PROGRAMS.glob("*.txt"))
        for text in split(path.read_text(encoding="utf-8")).values()
    ]
    cases = [case.code for rule in all_rules() for case in (*rule.bad, *rule.good)]
    return programs + cases


def mutated(text: str, source: random.Random, other: str) -> str:
    """Cut, double, swap and splice lines and words."""
    lines = text.split("\n")
    for _ in range(source.randint(1, 4)):
        kind = source.randrange(6)
        at = source.randrange(len(lines))
        if kind == 0:
            del lines[at : at + source.randint(1, 3)]
        elif kind == 1:
            lines.insert(at, lines[source.randrange(len(lines))])
        elif kind == 2:
            lines[at] = lines[at].replace("    ", "", 1)
        elif kind == 3:
            words = re.split(r"(\W)", lines[at])
            words[source.randrange(len(words))] = source.choice(WORDS)
            lines[at] = "".join(words)
        elif kind == 4:
            lines[at:at] = other.split("\n")[: source.randint(1, 12)]
        else:
            names = re.findall(r"\b[a-z_]{2,}\b", text)
            if names:
                lines[at] = re.sub(r"\b[a-z_]{2,}\b", source.choice(names), lines[at], count=1)
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_sources_never_crash_and_edits_stay_valid(seed: int) -> None:
    source = random.Random(seed)
    texts = sources()
    parsed = 0
    for text in texts:
        changed = mutated(text, source, source.choice(texts))
        try:
            module = parse("fuzz.py", changed)
        except SourceError:
            continue
        parsed += 1
        problems = check(analyse(module, Project()))
        fixes = [problem.fix for problem in problems if problem.fix is not None]
        for fix in fixes:
            new, done = apply(changed, [fix], lambda _: True)
            assert not done or parses(new), f"{fix}\n{changed}"
        new, _ = apply(changed, fixes, parses)
        ast.parse(new)
        for problem in problems:
            assert 1 <= problem.line <= problem.end_line <= len(changed.split("\n"))
            assert problem.column >= 1
    # Most mutations still parse, or the test would test nothing.
    assert parsed > len(texts) // 4


ODD = (
    "",
    "\n",
    "\ufeffimport tensorflow as tf\n",
    "x = '\x00'",
    "import tensorflow as tf\n" + "(" * 500 + ")" * 500,
    "import tensorflow as tf\nx = " + "+".join(["tf.ones(1)"] * 900),
    "import tensorflow as tf\ndef f(): f()\nwhile 1: f()",
    "import tensorflow as tf\nclass A(A): pass\nA()",
    "from .. import x\nimport keras\nx.y()",
)


@pytest.mark.parametrize("text", ODD)
def test_odd_sources(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text, encoding="utf-8")
    checked = check_paths([str(path)])
    assert all("\n" not in error for error in checked.errors)


def test_a_part_of_the_installed_sources(tmp_path: Path) -> None:
    """Every twelfth file; `make bench-check` goes through all of them."""
    spec = importlib.util.find_spec("keras")
    if spec is None or spec.origin is None:
        pytest.skip("Keras is not installed")
    keras = Path(spec.origin).parent
    files = discover([str(keras), str(keras.parent / "tensorflow" / "python")])[::12]
    checked = check_paths(files)
    assert checked.files > 100
    assert checked.errors == []
