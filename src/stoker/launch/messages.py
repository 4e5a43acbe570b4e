"""What supervisor and agent say to each other: a line of JSON each, with what is said under `say`.

| supervisor says | fields |
|---|---|
| `ports` | `count`: find so many free ones |
| `start` | `round`, `directory`, `arguments` of Python, `environment` of all, `heartbeat`, `door`, `workers`: rank, |
| | port, environment |
| `signal` | `number`: to all workers |
| `kill` | all workers, at once |

| agent says | fields |
|---|---|
| `hello` | `host`, `python` |
| `alive` | about once a second |
| `ports` | `ports` |
| `up` | `round`, `rank`: its Python has begun |
| `joined` | `round`, `rank`: it listens at its address |
| `text` | `round`, `rank`, `stream`, `lines` |
| `exit` | `round`, `rank`, `status`: as `subprocess` has it, negative for a signal |
| `silent` | `round`, `rank`, `seconds`, `stopped`: no heartbeat for so long |
| `killed` | `round`: no worker is left |
| `refused` | `round`, `rank`, `why`: it could not be started |
"""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]


def encode(say: str, **fields: Any) -> bytes:
    """A message as a line."""
    return json.dumps({"say": say, **fields}).encode("utf-8") + b"\n"


def decode(line: bytes) -> Message:
    """The message of a line.

    Raises:
        ValueError: it is none, such as the greeting of a login shell.
    """
    message = json.loads(line)
    if not isinstance(message, dict) or "say" not in message:
        raise ValueError("not a message")
    return message
