"""A real S3 server in a process of its own (moto's), and a proxy in front of it that breaks what it passes on."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>injected</Message></Error>"
# What may be wrong with an answer: "" is nothing.
STATUS = {"500": (500, "InternalError"), "503": (503, "SlowDown"), "403": (403, "AccessDenied")}
CHOPPED = ("cut", "short")


@contextmanager
def s3_server() -> Iterator[int]:
    """Its port."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            if found := re.search(r"Running on http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        # It logs every request: what nobody reads would block it.
        threading.Thread(target=server.stdout.read, daemon=True).start()
        try:
            yield int(found[1])
        finally:
            server.kill()


class Proxy:
    """Passes requests on. `fault` says what goes wrong with one: it gets the method, the path and how often it came."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self.fault: Callable[[str, str, int], str] = lambda method, path, count: ""
        # Called for each request, which waits until it returns.
        self.hold: Callable[[str, str], None] = lambda method, path: None
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.faults: Counter[str] = Counter()
        self.lock = threading.Lock()

    def gets(self) -> int:
        """How many requests asked for the content of an object."""
        return sum(n for (method, path, _), n in self.seen.items() if method == "GET" and "?" not in path)

    def clear(self) -> None:
        """No faults, nothing seen."""
        self.fault = lambda method, path, count: ""
        self.hold = lambda method, path: None
        self.seen.clear()
        self.faults.clear()


@contextmanager
def proxy_to(port: int) -> Iterator[tuple[Proxy, int]]:
    """A proxy in front of a server, and its own port."""
    proxy = Proxy(port)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            key = (self.command, self.path, self.headers.get("Range", ""))
            with proxy.lock:
                proxy.seen[key] += 1
                fault = proxy.fault(self.command, self.path, proxy.seen[key])
                proxy.faults[fault] += bool(fault)
            proxy.hold(self.command, self.path)
            body = self._read_body()
            if fault in STATUS:
                status, code = STATUS[fault]
                text = ERROR.format(code).encode()
                self._answer(
                    status, {"Content-Type": "application/xml"}, b"" if self.command == "HEAD" else text
                )
                return
            link = http.client.HTTPConnection("127.0.0.1", proxy.behind)
            link.request(self.command, self.path, body, dict(self.headers))
            answer = link.getresponse()
            content, headers = answer.read(), dict(answer.getheaders())
            link.close()
            if fault in CHOPPED and self.command == "GET" and answer.status < 300:
                self._answer(answer.status, headers, content[: len(content) // 2], fault, len(content))
                return
            self._answer(answer.status, headers, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

        def _read_body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                del self.headers["Transfer-Encoding"]
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def _answer(
            self, status: int, headers: dict[str, str], content: bytes, fault: str = "", length: int = 0
        ) -> None:
            """Send an answer; one that is "cut" promises more than it holds, one that is "short" does not."""
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            if self.command == "HEAD":
                length = int(headers.get("Content-Length", 0))
            elif fault != "cut":
                length = len(content)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)
            if fault == "cut":
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    class Front(ThreadingHTTPServer):
        daemon_threads = True

        def __init__(self) -> None:
            super().__init__(("127.0.0.1", 0), Handler)
            self._open: set[socket.socket] = set()

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            self._open.add(request)
            super().process_request_thread(request, client_address)
            self._open.discard(request)

        def hang_up(self) -> None:
            """End the threads that wait for clients, which keep their connections: tests after these want none."""
            for request in tuple(self._open):
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that is killed is none; whatever else goes wrong here shows in the test's own answers."""
            if not isinstance(sys.exc_info()[1], ConnectionError):
                super().handle_error(request, client_address)  # type: ignore[arg-type]

    server = Front()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        server.hang_up()
