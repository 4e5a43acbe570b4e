"""A run's steps as they would have been without other programs on the machine.

A thread loses time whenever it is ready to run and another program has the processor. Linux counts this time. All
threads wait in proportion to their work, so all accounts are scaled alike; for callbacks and saves, the run has counted
the wait itself.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.doctor.pricing.claims import has_repair, repair_of
from stoker.doctor.replay.pieces import Piece
from stoker.records import Finding, SteppingRow

# This is paid once an epoch, and lasts as long as a thread of tf.data happens to sleep.
_BETWEEN_EPOCHS = "teardown"
# A wait of less than this share of the time is not worth correcting.
_NOTHING = 0.02


def without_teardowns(phase: SteppingRow, findings: list[Finding]) -> SteppingRow:
    """Return the phase without the deletion of iterators between epochs, unless a finding is about that."""
    seconds = phase.accounts.get(_BETWEEN_EPOCHS, 0.0)
    repairs = [repair_of(finding.kind) for finding in findings if has_repair(finding.kind)]
    if not 0 < seconds < phase.seconds or any(_BETWEEN_EPOCHS in repair.accounts for repair in repairs):
        return phase
    accounts = {name: value for name, value in phase.accounts.items() if name != _BETWEEN_EPOCHS}
    return replace(phase, seconds=phase.seconds - seconds, accounts=accounts)


def without_account(steps: list[list[Piece]], phase: SteppingRow) -> list[list[Piece]]:
    """Return the steps without pieces of accounts that the phase no longer has."""
    if _BETWEEN_EPOCHS in phase.accounts:
        return steps
    return [[piece for piece in step if piece.account != _BETWEEN_EPOCHS] for step in steps]


def part_left(phase: SteppingRow) -> float:
    """Return the share of the phase that is left without other programs: 1 if they hardly ran, or this is unknown."""
    if phase.asynchronous or phase.cpu_s <= 0 or phase.all_waited_s < _NOTHING * phase.seconds:
        return 1.0
    return _undisturbed_s(phase) / phase.seconds


def _undisturbed_s(phase: SteppingRow) -> float:
    """Return the seconds of the phase without other programs.

    Threads also wait for processors that threads of the same program have. If several wait at a time, the run gets
    shorter only by as much as they all do.
    """
    left_over = max(0.0, phase.cores * phase.seconds - phase.cpu_s)
    lost = min(phase.all_waited_s, left_over)
    return max(phase.seconds - lost, phase.seconds / (1 + lost / phase.cpu_s))


def take_part(phase: SteppingRow, part: float) -> SteppingRow:
    """Return the phase with all its seconds multiplied by this share."""
    accounts = {name: seconds * part for name, seconds in phase.accounts.items()}
    return replace(phase, accounts=accounts, seconds=phase.seconds * part)
