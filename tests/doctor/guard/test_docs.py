"""The example of docs/guard.md, copied and pasted: it fails on the sync, and passes without it."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT

pytest.importorskip("tensorflow")

PAGE = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")


def example() -> str:
    (found,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "limit_syncs" in block]
    return str(found)


def run(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    directory = pytester.mkdir("tests") if not (pytester.path / "tests").exists() else pytester.path / "tests"
    (directory / "test_throughput.py").write_text(text, encoding="utf-8")
    return pytester.runpytest_inprocess("tests/test_throughput.py", "--stoker")


def test_the_example_fails_as_the_page_says(pytester: pytest.Pytester) -> None:
    result = run(pytester, example())
    result.assert_outcomes(failed=1)
    (told,) = re.findall(r"```\n(stoker: 6 syncs.*?)```", PAGE, re.S)
    output = result.stdout.str()
    for line in told.strip().splitlines():
        assert line in output


def test_without_the_line_it_passes(pytester: pytest.Pytester) -> None:
    fixed = "".join(line for line in example().splitlines(True) if "delete this line" not in line)
    assert fixed != example()
    run(pytester, fixed).assert_outcomes(passed=1)


def test_the_first_example_says_what_is_raised() -> None:
    import tensorflow as tf

    import stoker

    loss = tf.random.uniform([])
    with pytest.raises(stoker.SyncError) as caught, stoker.guard():
        print(float(loss))
    shown = str(caught.value).splitlines()
    page = PAGE.splitlines()
    assert "stoker.SyncError: " + shown[0] in page
    assert shown[2] in page
    assert shown[3] in page
    assert shown[4] in page
