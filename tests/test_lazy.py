"""Names that are imported when they are used."""

from __future__ import annotations

import json
import json.decoder

import pytest

from stoker.errors import StokerError
from stoker.lazy import import_when_used


def test_a_name_comes_from_its_home_and_a_module_is_itself() -> None:
    find = import_when_used("json", {"loads": "json", "decoder": "json.decoder"})
    assert find("loads") is json.loads
    assert find("decoder") is json.decoder
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'absent'"):
        find("absent")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(home: str) -> None:
        raise ModuleNotFoundError(f"No module named {home!r}", name="pyarrow")

    monkeypatch.setattr("importlib.import_module", fail)
    with pytest.raises(StokerError, match=r"^stoker\.data\.csv needs pyarrow: .*stoker\[data\]"):
        import_when_used("stoker.data", {"csv": "stoker.data.readers"})("csv")
    with pytest.raises(StokerError, match=r"needs sklearn: .*stoker\[recipes\]"):
        import_when_used("stoker.recipes", {"table": "x"}, {"pyarrow": "sklearn"})("table")
