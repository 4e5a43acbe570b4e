"""A deprecated name works, and warns at the user's line with its replacement and the version in which it goes."""

from __future__ import annotations

import inspect
import warnings

import pytest

from stoker import deprecation
from stoker.version import __version__
from tests.support import ROOT


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


def test_nothing_deprecated_outlives_its_version() -> None:
    from stoker.cli._launch.options import ENGINE_REMOVED_IN

    current = tuple(map(int, __version__.split(".")[:2]))
    assert tuple(map(int, ENGINE_REMOVED_IN.split("."))) > current, "remove it now"


def test_the_docs_say_when_the_flag_goes() -> None:
    from stoker.cli._launch.options import ENGINE_REMOVED_IN

    assert f"removed in {ENGINE_REMOVED_IN}" in (ROOT / "docs" / "launch.md").read_text(encoding="utf-8")
