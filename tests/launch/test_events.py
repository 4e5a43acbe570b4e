"""The queue of events: in order, and a stage that waits for agents loses none of the others."""

from __future__ import annotations

import os
import signal

from hypothesis import given
from hypothesis import strategies as st

from stoker.launch.events import (
    AgentEvent,
    DiscoveryFailed,
    EventQueue,
    HostsChanged,
    JobEvent,
    SignalReceived,
)
from stoker.launch.hosts import Host
from stoker.launch.messages import AgentAlive

EVENTS: st.SearchStrategy[JobEvent] = st.one_of(
    st.builds(AgentEvent, st.sampled_from("ab"), st.integers(1, 3), st.just(AgentAlive())),
    st.builds(SignalReceived, st.sampled_from([2, 15])),
    st.builds(HostsChanged, st.lists(st.builds(Host, st.sampled_from("ab")), max_size=2)),
    st.builds(DiscoveryFailed, st.text()),
)


def take_all(queue: EventQueue) -> list[JobEvent]:
    events = []
    while (event := queue.get(0)) is not None:
        events.append(event)
    return events


@given(st.lists(EVENTS), st.integers(0, 5))
def test_events_that_a_stage_passes_over_stay_in_order(events: list[JobEvent], count: int) -> None:
    queue = EventQueue()
    for event in events:
        queue.put(event)
    from_agents = [event for event in events if isinstance(event, AgentEvent)]
    taken = [queue.get_agent_event(0) for _ in range(count)]
    assert taken == [*from_agents, *[None] * count][:count]
    rest = from_agents[count:]
    left = take_all(queue)
    assert [event for event in left if isinstance(event, AgentEvent)] == rest
    assert [event for event in left if not isinstance(event, AgentEvent)] == [
        event for event in events if not isinstance(event, AgentEvent)
    ]


def test_a_signal_ends_the_wait_for_agents_and_stays_for_the_next_stage() -> None:
    queue = EventQueue()
    before = signal.signal(signal.SIGUSR1, lambda number, _: queue.put(SignalReceived(number)))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert queue.get_agent_event(1000, until_signal=True) is None
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert queue.find_signal() == SignalReceived(signal.SIGUSR1)
    assert take_all(queue) == [SignalReceived(signal.SIGUSR1)]
    assert queue.find_signal() is None


def test_an_event_that_arrives_while_signals_are_looked_for_does_not_wait_for_the_next() -> None:
    queue, event = EventQueue(), AgentEvent("a", 1, AgentAlive())
    look = queue.find_signal

    def look_as_it_arrives() -> SignalReceived | None:
        queue.put(event)
        return look()

    queue.find_signal = look_as_it_arrives  # type: ignore[method-assign]
    assert queue.get_agent_event(0, until_signal=True) == event
