"""Decide who may send requests: a client with the token, from one of our pages, under one of our host names.

Any page in a browser on this machine can make that browser send requests here. Such a page does not know the token,
which comes with the printed URL and is then kept in a cookie; it cannot change `Origin`; and a host name that an
attacker points to this machine is not served.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "stoker-token"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)


class GuardedApp:
    """The app behind the checks. `hosts` are the names under which it is served, with the port; if empty, any."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._choose_app(scope)(scope, receive, send_with_headers)

    def _choose_app(self, scope: Scope) -> ASGIApp:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self._hosts and host not in self._hosts:
            return PlainTextResponse("not served under this name", 421)
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return PlainTextResponse("requests from other pages are refused", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["path"] == "/" and self._is_token(given):
            # Keep the token out of the address bar, out of the history and out of copied addresses.
            answer = RedirectResponse("/", 303)
            answer.set_cookie(_name_cookie(host), given, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_token(_read_cookie(headers.get("cookie", ""), _name_cookie(host))):
            return PlainTextResponse("open the URL that `stoker ui` printed: it contains the token", 401)
        return self._app

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _name_cookie(host: str) -> str:
    """Return the cookie's name with the port: cookies ignore ports, and two servers must not overwrite each other's."""
    return f"{COOKIE}-{host.rpartition(':')[2]}"


def _read_cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
