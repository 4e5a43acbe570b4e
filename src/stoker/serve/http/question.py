"""What a request asks of a model, before and after it is parsed, and how the answers become bytes again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker.serve.http.messages import Response
from stoker.serve.http.models import Version
from stoker.serve.rows import Rows

Encode = Callable[[dict[str, Any]], Response]


@dataclass(slots=True)
class Unparsed:
    """A request for a version of a model whose body is still bytes.

    Attributes:
        version: whom it is for.
        parse: makes it a question; may take long for a large body, and runs in any thread.
    """

    version: Version
    parse: Callable[[], Question]


@dataclass(slots=True)
class Question:
    """Rows for a version of a model.

    Attributes:
        version: whom it is for.
        rows: what it has to answer.
        encode: its answers, by the names of the outputs, as the protocol has them.
    """

    version: Version
    rows: Rows
    encode: Encode
