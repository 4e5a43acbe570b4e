"""An editor's side of the protocol: JSON-RPC over the pipes of a real `stoker lsp` process."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Far more than a check takes on a busy machine; only a server that says nothing waits so long.
_PATIENCE_S = 120


class Editor:
    """Starts the server in a directory, and speaks to it."""

    def __init__(self, directory: Path, encoding: str = "utf-16") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stoker", "lsp", "--stdio"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._arrived: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._requests = 0
        self.published: list[dict[str, Any]] = []
        self.shown: list[str] = []
        general = {"general": {"positionEncodings": [encoding]}}
        self.initialized = self.request(
            "initialize", processId=None, rootUri=directory.as_uri(), capabilities=general
        )
        self.notify("initialized")

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while (header := stream.readline()).strip():
                name, _, value = header.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
            if not header:
                return
            self._arrived.put(json.loads(stream.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        """Send a message that has no answer."""
        self._send({"method": method, "params": params})

    def request(self, method: str, **params: Any) -> Any:
        """Send a request, and wait for its answer."""
        self._requests += 1
        number = self._requests
        self._send({"id": number, "method": method, "params": params})
        answer = self.wait_for(lambda message: message.get("id") == number and "method" not in message)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message of a kind; what comes before it is kept in `published` and `shown`."""
        while True:
            message = self._arrived.get(timeout=_PATIENCE_S)
            if message.get("method") == "textDocument/publishDiagnostics":
                self.published.append(message["params"])
            if message.get("method") == "window/showMessage":
                self.shown.append(message["params"]["message"])
            if wanted(message):
                return message

    def wait_for_findings(self, path: Path, version: int | None) -> list[dict[str, Any]]:
        """The diagnostics of a version of a document."""
        message = self.wait_for(
            lambda m: (
                m.get("method") == "textDocument/publishDiagnostics"
                and m["params"]["uri"] == path.as_uri()
                and m["params"].get("version") == version
            )
        )
        found: list[dict[str, Any]] = message["params"]["diagnostics"]
        return found

    def open(self, path: Path, text: str | None = None) -> list[dict[str, Any]]:
        """Open a document, with other text than on disk if given; its findings."""
        content = path.read_text(encoding="utf-8") if text is None else text
        item = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": content}
        self.notify("textDocument/didOpen", textDocument=item)
        return self.wait_for_findings(path, 1)

    def change(self, path: Path, version: int, text: str) -> None:
        """Replace a document's whole text."""
        document = {"uri": path.as_uri(), "version": version}
        self.notify("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def close(self) -> int:
        """Say goodbye; the server's exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self._process.wait(_PATIENCE_S)

    def kill(self) -> None:
        """End the server whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
