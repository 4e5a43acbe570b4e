"""The events in a run's life, typed. The writer's queue, the spool and `applying` exchange nothing else.

On disk, an event is a JSON list of its kind and its fields, and a batch is one line, `[writer, number, [event, ...]]`.
Spool files outlive versions of Stoker: add kinds, never change one.

    ["run", id, columns]                          ["findings", id, [finding, ...]]
    ["change", id, columns]                       ["artifact", id, relation, artifact]
    ["values", id, step, time, {name: value}]     ["audit", time, event, id, details]
    ["ledger", id, {account: seconds}]            ["seen", [id, ...], time]
                                                  ["delete", id]

Events are named tuples, not dataclasses, because `run.log` makes one for every call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, TypedDict, cast

from stoker import redaction
from stoker.tracking.store.plain_values import JsonObject

# Part of a row of `runs`, by column name.
Columns: TypeAlias = JsonObject


class ArtifactColumns(TypedDict):
    """A row of `artifacts`."""

    hash: str
    kind: str
    name: str
    size: int | None
    path: str
    time: float


class RunStarted(NamedTuple):
    """A run starts."""

    run: str
    columns: Columns


class RunChanged(NamedTuple):
    """Columns of a run change, such as its state or its parameters."""

    run: str
    columns: Columns


class ValuesLogged(NamedTuple):
    """A run logs values at a step."""

    run: str
    step: int
    time: float
    values: dict[str, float]


class LedgerMeasured(NamedTuple):
    """A run's ledger, which replaces the previous one."""

    run: str
    accounts: dict[str, float]


class FindingsMeasured(NamedTuple):
    """A run's findings, which replace the previous ones."""

    run: str
    findings: list[JsonObject]


class ArtifactLinked(NamedTuple):
    """A run uses or makes an artifact."""

    run: str
    relation: str
    artifact: ArtifactColumns


class AuditNoted(NamedTuple):
    """An entry for the audit."""

    time: float
    event: str
    run: str | None
    details: JsonObject


class RunsSeen(NamedTuple):
    """These runs are alive."""

    runs: list[str]
    time: float


class RunDeleted(NamedTuple):
    """A run is deleted, with everything it logged."""

    run: str


Event: TypeAlias = (
    RunStarted
    | RunChanged
    | ValuesLogged
    | LedgerMeasured
    | FindingsMeasured
    | ArtifactLinked
    | AuditNoted
    | RunsSeen
    | RunDeleted
)


class Batch(NamedTuple):
    """Events of one writer, committed together; `number` counts the writer's batches from 1."""

    writer: str
    number: int
    events: list[Event]


class DamagedBatchError(Exception):
    """A line is not a batch."""


Check: TypeAlias = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_object_of_numbers(value: object) -> bool:
    # SQLite would accept text in place of a number.
    return isinstance(value, dict) and all(map(_is_number, value.values()))


# The wire format: each kind's class, and a check for each of its fields.
_WIRE: dict[str, tuple[Callable[..., Event], tuple[Check, ...]]] = {
    "run": (RunStarted, (_is_text, _is_object)),
    "change": (RunChanged, (_is_text, _is_object)),
    "values": (ValuesLogged, (_is_text, _is_whole, _is_number, _is_object_of_numbers)),
    "ledger": (LedgerMeasured, (_is_text, _is_object_of_numbers)),
    "findings": (FindingsMeasured, (_is_text, _is_list)),
    "artifact": (ArtifactLinked, (_is_text, _is_text, _is_object)),
    "audit": (AuditNoted, (_is_number, _is_text, _is_text_or_none, _is_object)),
    "seen": (RunsSeen, (_is_list, _is_number)),
    "delete": (RunDeleted, (_is_text,)),
}
_KINDS = {make: kind for kind, (make, _) in _WIRE.items()}


def encode_batch(batch: Batch) -> str:
    """Encode a batch as a line, without the line break."""
    events = [(_KINDS[type(event)], *event) for event in batch.events]
    return json.dumps([batch.writer, batch.number, events], separators=(",", ":"))


def decode_batch(line: bytes) -> Batch:
    """Decode a line.

    Raises:
        DamagedBatchError: the line is not a batch.
    """
    try:
        writer, number, events = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        raise DamagedBatchError from None
    if not isinstance(writer, str) or type(number) is not int or not isinstance(events, list):
        raise DamagedBatchError
    return Batch(writer, number, [decode_event(event) for event in events])


def decode_event(value: object) -> Event:
    """Decode one event; a file may hold anything.

    Raises:
        DamagedBatchError: the value is not an event.
    """
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        raise DamagedBatchError
    kind, *fields = value
    if kind not in _WIRE:
        raise DamagedBatchError
    make, checks = _WIRE[kind]
    if len(fields) != len(checks) or not all(
        check(field) for check, field in zip(checks, fields, strict=True)
    ):
        raise DamagedBatchError
    return make(*fields)


# Columns that identify something: after redaction, they would refer to nothing.
_IDENTIFYING = frozenset({"hash", "path", "files"})


def redact(event: Event) -> Event:
    """Remove secrets from an event's text; numbers and times are unchanged."""
    match event:
        case RunStarted() | RunChanged():
            return event._replace(columns=_redact_columns(event.columns))
        case FindingsMeasured():
            return event._replace(findings=redaction.redact(event.findings))
        case ArtifactLinked():
            return event._replace(artifact=cast(ArtifactColumns, _redact_columns(dict(event.artifact))))
        case AuditNoted():
            return event._replace(details=_redact_columns(event.details))
    return event


def _redact_columns(columns: Columns) -> Columns:
    redacted = redaction.redact({name: value for name, value in columns.items() if name not in _IDENTIFYING})
    if "arguments" in columns:
        redacted["arguments"] = redaction.redact_arguments(columns["arguments"])
    return {name: redacted.get(name, value) for name, value in columns.items()}
