"""Booleans are found in a body of JSON before its values are looked at."""

from __future__ import annotations

import pytest

pytest.importorskip("orjson")

from stoker.serve.http.messages import may_hold_booleans

NUMBERS = b"[" + b"1.5, -2e-7, " * 400


@pytest.mark.parametrize("before", [b"[", NUMBERS, NUMBERS + b'"rrr", "fff", ' * 20, b"x"])
@pytest.mark.parametrize("after", [b"]", b", 3" * 900 + b"]", b', "rfrf"' * 40 + b"]"])
def test_booleans_are_found_wherever_they_are(before: bytes, after: bytes) -> None:
    assert may_hold_booleans(before + b"true" + after)
    assert may_hold_booleans(before + b"false" + after)
    assert may_hold_booleans(b"true" + before + after)
    assert may_hold_booleans(before + after + b"false")
    for other in (b"7", b"null", b'"tru"', b'"fals"', b'"rue"'):
        assert not may_hold_booleans(before + other + after)
