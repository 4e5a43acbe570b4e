"""How much one request may ask for, for inputs of any kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.serve.plane import limits
from stoker.serve.plane.answering import is_large
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rows import InputRows
from stoker.serve.signature import Field

TEXT = Field("text", "string", (), "text")
SEQUENCE = Field("sequence", "float32", (None,), "sequence")
VECTOR = Field("vector", "float32", (4,), "vector")
IMAGE = Field("image", "uint8", (8, 8, 3), "image")
SETTINGS = ServerSettings({}, rows=10, string_bytes=5)


def test_a_string_may_be_so_long() -> None:
    def check(*texts: str) -> None:
        array: Any = np.array(texts, object)
        limits.check_converted([TEXT], InputRows([array], len(texts), False), SETTINGS)

    check("12345", "1")
    with pytest.raises(RequestError, match="'text': a string of 6 is too long: at most 5"):
        check("1", "123456")


def test_json_may_have_so_many_values() -> None:
    many = b"[" + b"{}," * 100_000 + b"0]"
    with pytest.raises(
        RequestError, match="the body has about 200001 values: at most 10170 fit into 10 rows"
    ):
        limits.check_json(many, [VECTOR], SETTINGS)
    with pytest.raises(RequestError, match=r"at most 10017 fit into 1 row$"):
        limits.check_json(many, [VECTOR], replace(SETTINGS, rows=1))
    # Texts have braces of their own, and what has no size may have any.
    limits.check_json(many, [VECTOR, TEXT], SETTINGS)
    limits.check_json(many, [SEQUENCE], SETTINGS)
    limits.check_json(many[:100_000], [VECTOR], SETTINGS)


def test_what_may_take_long_is_parsed_in_a_thread() -> None:
    sizes = (4096, 4097, 128 << 10, (128 << 10) + 1)
    assert [is_large(size, [VECTOR]) for size in sizes] == [False, False, False, True]
    assert [is_large(size, [IMAGE]) for size in sizes] == [False, True, True, True]
