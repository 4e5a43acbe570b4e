"""OpenTelemetry for one process of a server: on if it is asked for and works, and never a reason not to serve."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import UsageError, describe_error
from stoker.serve.plane.models import ServedModels
from stoker.serve.plane.settings import ServerWorker
from stoker.serve.telemetry.environment import TelemetryPlan, read_plan
from stoker.serve.telemetry.requests import RequestTracer

if TYPE_CHECKING:
    from stoker.serve.telemetry.sending import Sender

# How soon the sending thread makes way for the event loop; Python's own 5 ms would be noticeable in answers.
_SWITCH_S = 0.0005


@dataclass(frozen=True)
class Telemetry:
    """The parts of telemetry that a process runs: none if it is off."""

    tracer: RequestTracer | None = None
    sender: Sender | None = None

    def close(self) -> None:
        """Send the rest, and end."""
        if self.sender is not None:
            self.sender.close()


def start_telemetry(
    wanted: bool, models: ServedModels, worker: ServerWorker, say: Callable[[str], None]
) -> Telemetry:
    """Start what the environment asks for, `wanted` by an option or not. A fault is reported in one line."""
    try:
        plan = read_plan(os.environ, wanted)
        if plan is None:
            return Telemetry()
        return _start(plan, models, worker, say)
    except ImportError as error:
        reason = f"it needs {error.name or error}: install it with pip install 'stoker[otel]'"
    except UsageError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - whatever the SDK makes of its variables, the server serves
        reason = describe_error(error)[:200]
    if worker.number == 0:  # the other workers would say the same
        say(f"warning: OpenTelemetry is off: {reason}")
    return Telemetry()


def _start(
    plan: TelemetryPlan, models: ServedModels, worker: ServerWorker, say: Callable[[str], None]
) -> Telemetry:
    from opentelemetry import propagate
    from opentelemetry.sdk.resources import Resource

    from stoker.serve.telemetry.counts import CountReader
    from stoker.serve.telemetry.sending import Notes, Sender
    from stoker.serve.telemetry.spans import SpanMaker

    notes, theirs = Notes(), logging.getLogger("opentelemetry")
    theirs.addHandler(notes)
    theirs.propagate = False
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "stoker"}))
    if "service.instance.id" not in resource.attributes:
        resource = resource.merge(Resource({"service.instance.id": str(uuid.uuid4())}))
    resource = resource.merge(Resource({"stoker.worker": worker.number}))
    maker, counts, sender = (
        SpanMaker(resource),
        CountReader(models.metrics, resource, models.note_waiting),
        Sender(plan, notes, say),
    )
    if complaint := notes.take():
        raise UsageError(complaint)
    tracer = None
    if plan.traces:
        fields = propagate.get_global_textmap().fields
        tracer = RequestTracer(fields, plan.queue, min(plan.queue, max(1, plan.batch // 4)), sender.wake)
    sys.setswitchinterval(_SWITCH_S)
    sender.start(tracer, maker, counts)
    return Telemetry(tracer, sender)
