"""The vocabulary."""

from __future__ import annotations

import re

from stoker.kinds import BY_CODE, KINDS
from stoker.records import ACCOUNTS


def test_codes_are_unique_and_by_family() -> None:
    assert len(BY_CODE) == len(KINDS)
    assert all(re.fullmatch(r"STK[1-6]\d\d", code) for code in BY_CODE)
    assert KINDS["sync-in-loop"].code == "STK101"


def test_every_kind_can_be_explained() -> None:
    for kind in KINDS.values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.slug)
        assert kind.account in ACCOUNTS
        assert kind.title[0].isupper() or kind.title.startswith(("predict()", "fit()"))
        assert not kind.title.endswith(".")
        assert kind.remedy.endswith(".")
