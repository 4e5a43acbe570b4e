"""A deprecated name works, and warns at the user's line with its replacement and the version in which it goes."""

from __future__ import annotations

import inspect
import re
import warnings

import pytest

from stoker import deprecation
from stoker.version import __version__
from tests.support import ROOT, SRC


def old_name() -> int:
    deprecation.warn("stoker.old_name", "stoker.new_name", removed_in="0.4")
    return 3


def test_the_warning_is_at_the_line_that_uses_the_name() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    with pytest.warns(DeprecationWarning, match="old_name") as caught:
        assert (old_name(), line := frame.f_lineno)[0] == 3
    (warning,) = caught
    assert str(warning.message) == (
        "stoker.old_name is deprecated and will be removed in Stoker 0.4: use stoker.new_name"
    )
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_python_can_turn_it_into_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        with pytest.raises(DeprecationWarning, match=r"use stoker\.new_name"):
            old_name()


def find_warnings() -> dict[str, str]:
    """The names that warn, each with the version that removes it."""
    warn = re.compile(r'\bdeprecation\.warn\(\s*"([^"]+)",\s*"[^"]+",\s*removed_in="([^"]+)"')
    sources = [
        path.read_text(encoding="utf-8") for path in SRC.rglob("*.py") if path.name != "deprecation.py"
    ]
    return dict(pair for source in sources for pair in warn.findall(source))


def test_nothing_deprecated_outlives_its_version() -> None:
    from stoker.cli._launch.options import ENGINE_REMOVED_IN

    current = tuple(map(int, __version__.split(".")[:2]))
    found = {**find_warnings(), "--engine": ENGINE_REMOVED_IN}
    assert [name for name, end in found.items() if tuple(map(int, end.split("."))) <= current] == []


def test_the_version_policy_lists_what_is_deprecated() -> None:
    policy = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    listed = re.sub(r"\s+", " ", policy.partition("Deprecated now:")[2].partition("\n- **")[0])
    assert "Trainer.workings" in find_warnings()
    for name in ("stoker launch --engine", *find_warnings()):
        assert f"`{name}`" in listed


def test_the_docs_say_when_the_flag_goes() -> None:
    from stoker.cli._launch.options import ENGINE_REMOVED_IN

    assert f"removed in {ENGINE_REMOVED_IN}" in (ROOT / "docs" / "launch.md").read_text(encoding="utf-8")
