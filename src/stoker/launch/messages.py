"""The messages between supervisor and agent: one line of JSON each, in which `say` names the type of the message.

A supervisor sends commands, and an agent sends reports. Times are in seconds. A report with a `round` concerns a worker
of that round; the supervisor ignores reports of earlier rounds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar, get_args


@dataclass(frozen=True)
class FindPorts:
    """Command: find `count` free ports, and report them."""

    say: ClassVar[str] = "ports"
    count: int


@dataclass(frozen=True)
class WorkerStart:
    """One worker of a `StartWorkers`, with the variables that only it gets."""

    rank: int
    port: int
    environment: dict[str, str]


@dataclass(frozen=True)
class StartWorkers:
    """Command: start the workers of a round.

    `door` injects the heartbeat (`stoker run` has one of its own); `standby` keeps a spare for each worker.
    """

    say: ClassVar[str] = "start"
    round: int
    directory: str
    arguments: list[str]
    environment: dict[str, str]
    heartbeat: float
    door: bool
    standby: bool
    workers: list[WorkerStart]


@dataclass(frozen=True)
class SendSignal:
    """Command: send a signal to all workers."""

    say: ClassVar[str] = "signal"
    number: int


@dataclass(frozen=True)
class KillWorkers:
    """Command: kill all workers at once, and report `WorkersKilled`."""

    say: ClassVar[str] = "kill"


Command = FindPorts | StartWorkers | SendSignal | KillWorkers


@dataclass(frozen=True)
class AgentReady:
    """Report: the agent has started."""

    say: ClassVar[str] = "hello"
    host: str
    python: str


@dataclass(frozen=True)
class AgentAlive:
    """Report: the agent's own heartbeat."""

    say: ClassVar[str] = "alive"


@dataclass(frozen=True)
class PortsFound:
    """Report: the ports that `FindPorts` asked for."""

    say: ClassVar[str] = "ports"
    ports: list[int]


@dataclass(frozen=True)
class WorkerReport:
    """The fields that all reports about a worker have."""

    round: int
    rank: int


@dataclass(frozen=True)
class WorkerStarted(WorkerReport):
    """Report: a worker sent its first heartbeat, so its Python runs."""

    say: ClassVar[str] = "up"


@dataclass(frozen=True)
class WorkerJoined(WorkerReport):
    """Report: a worker listens on its address."""

    say: ClassVar[str] = "joined"


@dataclass(frozen=True)
class WorkerOutput(WorkerReport):
    """Report: lines that a worker wrote to `stdout` or `stderr`."""

    say: ClassVar[str] = "text"
    stream: str
    lines: list[str]


@dataclass(frozen=True)
class WorkerEvents(WorkerReport):
    """Report: lines that a worker wrote to its journal (`stoker.goodput`)."""

    say: ClassVar[str] = "events"
    lines: str


@dataclass(frozen=True)
class WorkerExited(WorkerReport):
    """Report: a worker's exit status, negative for a signal as in `subprocess`."""

    say: ClassVar[str] = "exit"
    status: int


@dataclass(frozen=True)
class WorkerSilent(WorkerReport):
    """Report: a worker has sent no heartbeat for `seconds`; `stopped` says whether the system lists it as stopped."""

    say: ClassVar[str] = "silent"
    seconds: float
    stopped: bool


@dataclass(frozen=True)
class WorkerRefused(WorkerReport):
    """Report: a worker could not be started."""

    say: ClassVar[str] = "refused"
    why: str


@dataclass(frozen=True)
class WorkersKilled:
    """Report: no worker is left."""

    say: ClassVar[str] = "killed"
    round: int


Report = (
    AgentReady
    | AgentAlive
    | PortsFound
    | WorkerStarted
    | WorkerJoined
    | WorkerOutput
    | WorkerEvents
    | WorkerExited
    | WorkerSilent
    | WorkerRefused
    | WorkersKilled
)

Message = TypeVar("Message", Command, Report)
_COMMANDS: dict[str, type[Command]] = {kind.say: kind for kind in get_args(Command)}
_REPORTS: dict[str, type[Report]] = {kind.say: kind for kind in get_args(Report)}


def encode(message: Command | Report) -> bytes:
    """Encode a message as a line."""
    return json.dumps({"say": message.say, **asdict(message)}).encode("utf-8") + b"\n"


def decode_command(line: bytes) -> Command:
    """Read a line from the supervisor.

    Raises:
        ValueError: the line is not a command.
    """
    kind, values = _decode(line, _COMMANDS)
    if kind is StartWorkers:
        values["workers"] = [WorkerStart(**worker) for worker in values["workers"]]
    return kind(**values)


def decode_report(line: bytes) -> Report:
    """Read a line from an agent.

    Raises:
        ValueError: the line is not a report but, for example, the greeting of a login shell.
    """
    kind, values = _decode(line, _REPORTS)
    return kind(**values)


def _decode(line: bytes, kinds: Mapping[str, type[Message]]) -> tuple[type[Message], dict[str, Any]]:
    values = json.loads(line)
    kind = kinds.get(values.pop("say", "")) if isinstance(values, dict) else None
    if kind is None or set(values) != {field.name for field in fields(kind)}:
        raise ValueError("not a message")
    return kind, values
