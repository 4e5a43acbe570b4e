"""How much one request may ask for, for inputs of any kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("orjson")

from stoker.serve.http import limits
from stoker.serve.http.app import App
from stoker.serve.http.messages import HttpError
from stoker.serve.http.settings import Settings
from stoker.serve.rows import Rows
from stoker.serve.signature import Field

TEXT = Field("text", "string", (), "text")
SEQUENCE = Field("sequence", "float32", (None,), "sequence")
VECTOR = Field("vector", "float32", (4,), "vector")
IMAGE = Field("image", "uint8", (8, 8, 3), "image")
SETTINGS = Settings({}, rows=10, string_bytes=5)


def test_a_string_may_be_so_long() -> None:
    def check(*texts: str) -> None:
        array: Any = np.array(texts, object)
        limits.check_converted([TEXT], Rows([array], len(texts), False), SETTINGS)

    check("12345", "1")
    with pytest.raises(HttpError, match="'text': a string of 6 is too long: at most 5"):
        check("1", "123456")


def test_json_may_have_so_many_values() -> None:
    many = b"[" + b"{}," * 100_000 + b"0]"
    with pytest.raises(HttpError, match="the body has about 200001 values: 10 rows have at most 10170"):
        limits.check_json(many, [VECTOR], SETTINGS)
    # Texts have braces of their own, and what has no size may have any.
    limits.check_json(many, [VECTOR, TEXT], SETTINGS)
    limits.check_json(many, [SEQUENCE], SETTINGS)
    limits.check_json(many[:100_000], [VECTOR], SETTINGS)


def version_of(field: Field) -> Any:
    signature = SimpleNamespace(inputs=(field,))
    return SimpleNamespace(predictor=SimpleNamespace(bundle=SimpleNamespace(signature=signature)))


def test_what_may_take_long_is_parsed_in_a_thread() -> None:
    app: Any = SimpleNamespace()
    sizes = (4096, 4097, 128 << 10, (128 << 10) + 1)
    assert [App.is_large(app, size, version_of(VECTOR)) for size in sizes] == [False, False, False, True]
    assert [App.is_large(app, size, version_of(IMAGE)) for size in sizes] == [False, True, True, True]
