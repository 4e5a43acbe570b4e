"""Notes about a request for its trace, taken while it is answered; a thread makes spans from them (`sending`).

An SDK's spans cost as much as a small model, so the event loop only notes moments, in a queue with a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stoker.serve.batching import BatchCall

# A longer header does not belong to a trace, and would fill the queue's memory.
_MOST_HEADER = 2048


@dataclass(slots=True)
class RequestTrace:
    """The moments of one request, in seconds on the clock of `stoker.clock`.

    Attributes:
        began: when its head had arrived.
        service: the gRPC service; "" for HTTP.
        operation: the route in HTTP, the method in gRPC.
        path: the path in HTTP.
        carrier: the headers that say which trace it belongs to.
        calls: for each call, when it was queued, the batch that answered it, and the number of the version.
        ended: when it had its answer; with `id`, `model`, `rows` and the `status` of the answer.
    """

    began: float
    service: str
    operation: str
    path: str
    carrier: dict[str, str]
    calls: list[tuple[float, BatchCall, int]] = field(default_factory=list)
    id: str = ""
    model: str = ""
    rows: int = 0
    status: int = 0
    ended: float = 0.0

    def add_call(self, put_at: float, call: BatchCall, version: int) -> None:
        """Note that a batch answered the request's rows."""
        self.calls.append((put_at, call, version))


class RequestTracer:
    """Begins and ends the notes of requests, and queues them.

    Attributes:
        is_on: whether requests are noted; off while no collector takes the spans.
        lost: how many requests did not fit into the queue.
    """

    def __init__(self, headers: Iterable[str], most: int, wake_at: int, wake: Callable[[], None]) -> None:
        self._headers = [(one.lower().encode(), one.lower()) for one in headers]
        self._names = {name for _, name in self._headers}
        self._most, self._wake_at, self._wake = most, wake_at, wake
        self.done: deque[RequestTrace] = deque()
        self.is_on = True
        self.lost = 0

    def begin_http(self, path: str, headers: Mapping[bytes, bytes], began: float) -> RequestTrace:
        """Begin the notes of a POST."""
        carrier = {
            name: headers[key].decode("latin-1")
            for key, name in self._headers
            if key in headers and len(headers[key]) <= _MOST_HEADER
        }
        return RequestTrace(began, "", "", path, carrier)

    def begin_grpc(
        self, service: str, method: str, metadata: Iterable[tuple[str, str | bytes]], began: float
    ) -> RequestTrace:
        """Begin the notes of a call."""
        carrier = {
            name: value
            for name, value in metadata
            if name in self._names and isinstance(value, str) and len(value) <= _MOST_HEADER
        }
        return RequestTrace(began, service, method, "", carrier)

    def finish(
        self, trace: RequestTrace, request_id: str, model: str, rows: int, status: int, ended: float
    ) -> None:
        """End the notes of a request; discard them if no model was needed."""
        if not model or (status == 200 and not trace.calls):
            return
        waiting = len(self.done)
        if waiting >= self._most:
            self.lost += 1
            return
        trace.id, trace.model, trace.rows, trace.status, trace.ended = request_id, model, rows, status, ended
        self.done.append(trace)
        if waiting + 1 == self._wake_at:
            self._wake()
