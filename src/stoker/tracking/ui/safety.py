"""Who may ask: the one with the token, from a page of ours, under a name of ours.

A browser on this machine can be made to send requests by any page it shows. It cannot know the token, which comes with
the printed URL and is then kept in a cookie; it cannot change `Origin`; and a name that an attacker points to this
machine is not among the hosts that are served.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "stoker-token"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)


class Guarded:
    """The app, behind the checks. `hosts` are the names it is served under, with the port; none means any name."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._answer(scope)(scope, receive, sealed)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self._hosts and host not in self._hosts:
            return PlainTextResponse("not served under this name", 421)
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return PlainTextResponse("a page from elsewhere asked", 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["path"] == "/" and self._is_token(given):
            # Out of the address bar, the history and whatever is copied from them.
            answer = RedirectResponse("/", 303)
            answer.set_cookie(_cookie(host), given, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_token(_from_cookie(headers.get("cookie", ""), _cookie(host))):
            return PlainTextResponse("open the URL that `stoker ui` has printed: it has the token", 401)
        return self._app

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _cookie(host: str) -> str:
    """Cookies do not tell ports apart: two servers on one machine must not overwrite each other's."""
    return f"{COOKIE}-{host.rpartition(':')[2]}"


def _from_cookie(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value
