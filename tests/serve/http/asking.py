"""Asking the application without a socket, as a server would."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stoker.serve.http.app import App
from stoker.serve.plane.answering import DataPlane
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.settings import ServerSettings


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def application(paths: dict[str, Path], **options: Any) -> tuple[App, list[str]]:
    """An application with these models, and the lines it says."""
    said: list[str] = []
    settings = ServerSettings({name: str(path) for name, path in paths.items()}, **options)
    metrics = Metrics(list(paths))
    models = ServedModels(settings, metrics, said.append)
    models.load()
    plane = DataPlane(settings, models, metrics, said.append)
    plane.is_ready = True
    app = App(plane)
    return app, said


def variant(app: App, **changed: Any) -> App:
    """The same models with other settings."""
    return App(DataPlane(replace(app.settings, **changed), app.models, app.metrics, print))


async def ask(app: App, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
    """One request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent: list[Any] = []
    incoming = [
        {"type": "http.request", "body": data[:7], "more_body": True},
        {"type": "http.request", "body": data[7:]},
    ]

    async def receive() -> Any:
        if incoming:
            return incoming.pop(0)
        import asyncio

        await asyncio.Event().wait()
        return None

    async def send(message: Any) -> None:
        sent.append(message)

    plain = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await app({"type": "http", "method": method, "path": path, "headers": plain}, receive, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, sent[1]["body"])
