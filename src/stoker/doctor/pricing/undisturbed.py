"""A run's steps as they would have been had nobody else used the machine.

A thread loses time whenever it is ready to run and another program has the processor. Linux counts that. Whoever wants
processors waits for them in proportion, so all accounts are scaled alike; of callbacks and saves the run has counted
how long they waited.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.doctor.pricing.claims import has_repair, repair_of
from stoker.doctor.replay.pieces import Piece
from stoker.records import Finding, SteppingRow

# Paid once an epoch, and for as long as a thread of tf.data's happens to sleep.
_BETWEEN_EPOCHS = "teardown"
# Less than this share of the time is not worth correcting.
_NOTHING = 0.02


def without_teardowns(phase: SteppingRow, findings: list[Finding]) -> SteppingRow:
    """The phase without taking down iterators between epochs, unless a finding is about that."""
    seconds = phase.accounts.get(_BETWEEN_EPOCHS, 0.0)
    repairs = [repair_of(finding.kind) for finding in findings if has_repair(finding.kind)]
    if not 0 < seconds < phase.seconds or any(_BETWEEN_EPOCHS in repair.accounts for repair in repairs):
        return phase
    accounts = {name: value for name, value in phase.accounts.items() if name != _BETWEEN_EPOCHS}
    return replace(phase, seconds=phase.seconds - seconds, accounts=accounts)


def without_account(steps: list[list[Piece]], phase: SteppingRow) -> list[list[Piece]]:
    """The steps without pieces of accounts that the phase no longer has."""
    if _BETWEEN_EPOCHS in phase.accounts:
        return steps
    return [[piece for piece in step if piece.account != _BETWEEN_EPOCHS] for step in steps]


def part_left(phase: SteppingRow) -> float:
    """What is left of the phase without other programs: 1 where they hardly used the processors, or nothing tells."""
    if phase.asynchronous or phase.cpu_s <= 0 or phase.all_waited_s < _NOTHING * phase.seconds:
        return 1.0
    return _undisturbed_s(phase) / phase.seconds


def _undisturbed_s(phase: SteppingRow) -> float:
    """Seconds of the phase without other programs.

    Threads also wait for processors that others of this program have. Where several wait at a time, the run gets
    shorter only by as much as they all do.
    """
    left_over = max(0.0, phase.cores * phase.seconds - phase.cpu_s)
    lost = min(phase.all_waited_s, left_over)
    return max(phase.seconds - lost, phase.seconds / (1 + lost / phase.cpu_s))


def take_part(phase: SteppingRow, part: float) -> SteppingRow:
    """The phase with only this part of all its seconds."""
    accounts = {name: seconds * part for name, seconds in phase.accounts.items()}
    return replace(phase, accounts=accounts, seconds=phase.seconds * part)
