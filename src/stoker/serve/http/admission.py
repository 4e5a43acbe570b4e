"""Who may send a request, and how much of it is held: checked on both of its ways before its body is read."""

from __future__ import annotations

import hmac

from stoker.loopback import name_of
from stoker.serve.http.messages import HttpError, Request
from stoker.serve.http.settings import Settings

_HEALTH = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")
# For everybody, with a token or without: a load balancer asks, and the page, which asks for the token.
_OPEN = ("/", *_HEALTH)
_DIGITS = 12
_MOST_SEEN = 100


def check_token(token: str, given: bytes) -> None:
    """Check an Authorization header.

    Raises:
        HttpError: it does not have the token.
    """
    scheme, _, word = given.partition(b" ")
    same = hmac.compare_digest(word.strip(), token.encode())
    if not same or scheme.lower() != b"bearer":
        raise HttpError(401, "send the server's token as Authorization: Bearer TOKEN")


class Admission:
    """The checks of one process, and what it holds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hosts = frozenset(settings.hosts)
        self._seen: set[bytes] = set()  # headers that were found right
        self.held = 0  # bytes of the bodies of requests that are not answered yet

    def check(self, request: Request) -> None:
        """Check what is known of a request before its body is read.

        Raises:
            HttpError: it is refused, and its body need not be read.
        """
        headers, settings = request.headers, self._settings
        if self._hosts:
            self._check_host(request)
        if settings.token and request.path not in _OPEN:
            check_token(settings.token, headers.get(b"authorization", b""))
        encoding = headers.get(b"content-encoding")
        if encoding is not None and encoding.lower() != b"identity":
            shown = encoding.decode("latin-1")[:40]
            raise HttpError(415, f"Content-Encoding {shown!r} is not supported: send the body uncompressed")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and (len(length) > _DIGITS or int(length) > settings.body_bytes):
            shown = length[:_DIGITS].decode("latin-1") + ("..." if len(length) > _DIGITS else "")
            raise HttpError(413, f"the body has {shown} bytes; the limit is {settings.body_bytes}")

    def _check_host(self, request: Request) -> None:
        given = request.headers.get(b"host")
        if given in self._seen or given is None or request.path in _HEALTH:
            return  # a browser always says it; a load balancer asks for the health under any name
        name = name_of(given.decode("latin-1"))
        if name not in self._hosts:
            raise HttpError(421, f"this server is not known as {name[:80]!r}: allow it with --allowed-hosts")
        if len(self._seen) < _MOST_SEEN:
            self._seen.add(given)

    def hold(self, request: Request, size: int) -> None:
        """Count so many more bytes of a body.

        Raises:
            HttpError: all bodies together are too large.
        """
        request.held += size
        self.held += size
        if self.held > self._settings.held_bytes:
            most = self._settings.held_bytes
            raise HttpError(503, f"Requests already hold {most} bytes of memory. Try again later.", 1)

    def release(self, request: Request) -> None:
        """The body is not needed any more."""
        self.held -= request.held
        request.held = 0
