"""Decide who may send a request, before its body is read, however the request arrives."""

from __future__ import annotations

import hmac
import re
import zlib

from stoker.loopback import name_of
from stoker.serve.http.messages import HttpRequest
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.settings import ServerSettings

_HEALTH = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")
# Open to everybody: the health checks of a load balancer, and the page, which asks for the token itself.
OPEN = ("/", *_HEALTH)
ENCODINGS = (b"identity", b"gzip", b"x-gzip", b"deflate")
_MOST_DIGITS = 12
# zlib's codes for detecting its own format or gzip's, and for neither format, which some clients call deflate.
_ANY_FORMAT, _NO_FORMAT = 47, -15
_MOST_KNOWN = 100
# A plain request. One with any other header that changes what follows is parsed as usual.
_START = re.compile(rb"POST /v[12]/models/([\w.-]+)(?:/infer|:predict|:classify|:regress) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,12}) *(?=\r\n|$)")
_SPECIAL = re.compile(rb"\r\n(?:connection|expect|transfer-encoding|upgrade|x-request-id|[\s]):?")


def check_token(token: str, given: bytes) -> None:
    """Refuse an Authorization header without the token by raising RequestError."""
    scheme, _, word = given.partition(b" ")
    same = hmac.compare_digest(word.strip(), token.encode())
    if not same or scheme.lower() != b"bearer":
        raise RequestError(401, "send the server's token as Authorization: Bearer TOKEN")


def model_of(data: bytes) -> str | None:
    """Return the model that the bytes of one whole, plain request name; None for anything else.

    Used only to refuse: a request that a full queue refuses need not be parsed.
    """
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


def decompress(body: bytes, most: int) -> bytes:
    """Decompress a body; raise RequestError if it is damaged, or has more bytes than are allowed."""
    for form in (_ANY_FORMAT, _NO_FORMAT):
        inflating = zlib.decompressobj(form)
        try:
            found = inflating.decompress(body, most + 1)
        except zlib.error:
            continue
        if len(found) > most:
            raise RequestError(413, f"the body has more than {most} bytes when it is decompressed")
        if inflating.eof:
            return found
    raise RequestError(400, "the body is not what Content-Encoding says: it cannot be decompressed")


class Admission:
    """The checks of one process."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._hosts = frozenset(settings.hosts)
        self._known: set[bytes] = set()  # Host headers known to be right

    def check(self, request: HttpRequest) -> None:
        """Refuse a request before its body is read by raising RequestError."""
        headers, settings = request.headers, self._settings
        if self._hosts:
            self._check_host(request)
        if settings.token and request.path not in OPEN:
            check_token(settings.token, headers.get(b"authorization", b""))
        encoding = headers.get(b"content-encoding")
        if encoding is not None and encoding.lower() not in ENCODINGS:
            given = encoding.decode("latin-1")[:40]
            raise RequestError(
                415,
                f"Content-Encoding {given!r} is not supported: send the body as it is, or with gzip or deflate",
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and (len(length) > _MOST_DIGITS or int(length) > settings.body_bytes):
            digits = length[:_MOST_DIGITS].decode("latin-1") + ("..." if len(length) > _MOST_DIGITS else "")
            raise RequestError(413, f"the body has {digits} bytes; the limit is {settings.body_bytes}")

    def _check_host(self, request: HttpRequest) -> None:
        given = request.headers.get(b"host")
        if given in self._known or given is None or request.path in _HEALTH:
            return  # a browser always sends a Host header; a load balancer checks the health under any name
        name = name_of(given.decode("latin-1"))
        if name not in self._hosts:
            raise RequestError(
                421, f"this server is not known as {name[:80]!r}: allow it with --allowed-hosts"
            )
        if len(self._known) < _MOST_KNOWN:
            self._known.add(given)
