"""Which model a request is for, from its bytes, if all of it is there and nothing about it is special.

Only for refusing: whatever is not plain goes the usual way.
"""

from __future__ import annotations

import re

# Just these: a request with any other header that changes what follows is parsed as usual.
_START = re.compile(rb"POST /v[12]/models/([\w.-]+)(?:/infer|:predict|:classify|:regress) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,12}) *(?=\r\n|$)")
_SPECIAL = re.compile(rb"\r\n(?:connection|expect|transfer-encoding|upgrade|x-request-id|[\s]):?")


def model_of(data: bytes) -> str | None:
    """The model that one whole, plain request asks."""
    start = _START.match(data)
    if start is None:
        return None
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = data[:end].lower()
    lengths = _LENGTH.findall(head)
    if len(lengths) != 1 or head.count(b"content-length") != 1 or _SPECIAL.search(head):
        return None
    return start[1].decode() if len(data) == end + 4 + int(lengths[0]) else None
