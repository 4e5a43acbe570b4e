"""How long a worker's compiled calls waited. Windows of the profiler would show that, but could crash the worker.

A collective asks the leading worker for its parameters at each call, and the profiler's event for this request ends in
another thread than it began in. When a session stops, TensorFlow 2.21 keeps pointers to such events while the vector
that owns them grows, and writes to where the events were (`TraceMeRecorder::Consume`; later versions reserve the
vector).

A worker that waits for the others uses no processor. So the part of a call beyond the processor time that the process
used meanwhile was at least waiting: for an exchange, for input read inside the call, or for a processor.
"""

from __future__ import annotations

from stoker.doctor.probes.profiler_trace import WindowSummary


class ExchangeMeter:
    """Adds up the compiled calls, except first ones. The process has peers if `on`."""

    def __init__(self) -> None:
        self.on = False
        self._calls = self._ns = self._waited_ns = 0

    def add(self, elapsed_ns: int, processor_ns: int) -> None:
        """Add a call."""
        self._calls += 1
        self._ns += elapsed_ns
        self._waited_ns += max(0, elapsed_ns - processor_ns)

    def summary(self) -> WindowSummary | None:
        """Return what windows would show; None if no call was counted."""
        if not self._calls:
            return None
        busy_ns = self._ns - self._waited_ns
        return WindowSummary(
            graph_ns=self._ns,
            graph_communication_ns=self._waited_ns,
            graph_busy_ns=busy_ns,
            graph_calls=self._calls,
            # It is unknown how much the calls differed apart from the exchange.
            graph_quick_ns=busy_ns,
        )
