"""How far a run's speed can be trusted: the noise inside a run, and between runs of the same program.

Steps are not independent: a slow second makes many slow steps in a row. So the noise of a run's mean step is estimated
by drawing whole blocks of steps of several lengths (a circular block bootstrap); the largest estimate counts. A single
run cannot tell what changes from one run to the next (another process, another core, a neighbour on the machine). That
noise is assumed until several runs of a side show it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import accumulate

# The assumed spread between runs of the same program, as a share, and how many runs that assumption is worth.
ASSUMED_RUN_NOISE = 0.03
_ASSUMED_WORTH = 4
_RESAMPLES = 400
# Fewer steps than this tell nothing about noise.
_MIN_STEPS = 16
_Z = 1.959964
_MOST_RUNS = 1000


def mean_error(steps: Sequence[float]) -> float | None:
    """Return the standard error of the mean step, as a share of the mean; None for too few steps."""
    count = len(steps)
    mean = sum(steps) / count if count else 0.0
    if count < _MIN_STEPS or mean <= 0:
        return None
    lengths = {max(2, round(count ** (1 / 3))), round(math.sqrt(count)), max(2, count // 8)}
    return max(_block_bootstrap(steps, length) for length in sorted(lengths)) / mean


def _block_bootstrap(steps: Sequence[float], length: int) -> float:
    """Return the spread of the mean over random drawings of blocks. The same steps always give the same result."""
    chance = random.Random(len(steps))
    count = len(steps)
    sums = [0.0, *accumulate([*steps, *steps[:length]])]
    # The sum of the block that begins at each step: a drawing only chooses among these sums.
    totals = [sums[start + length] - sums[start] for start in range(count)]
    blocks = max(1, count // length)
    means = [sum(chance.choices(totals, k=blocks)) / (blocks * length) for _ in range(_RESAMPLES)]
    centre = sum(means) / len(means)
    return math.sqrt(sum((mean - centre) ** 2 for mean in means) / (len(means) - 1))


def measure_between_runs(sides: Sequence[Sequence[float]], assumed: float) -> tuple[float, int]:
    """Return the spread between runs of one side as a share, and the degrees of freedom behind it.

    `sides` are the logarithms of the runs' speeds. The assumed spread counts as much as `_ASSUMED_WORTH` runs, so that
    two runs that happen to agree are not taken for a machine without noise.
    """
    squares, freedom = 0.0, 0
    for values in sides:
        mean = sum(values) / len(values)
        squares += sum((value - mean) ** 2 for value in values)
        freedom += len(values) - 1
    total = freedom + _ASSUMED_WORTH
    return math.sqrt((squares + _ASSUMED_WORTH * assumed**2) / total), total


def runs_needed(spread: float, difference: float) -> int | None:
    """Return how many runs per side it takes to tell a difference (as a share) from noise; None for very many."""
    for runs in range(1, _MOST_RUNS + 1):
        freedom = 2 * (runs - 1) + _ASSUMED_WORTH
        if t_quantile(freedom) * spread * math.sqrt(2 / runs) <= abs(difference):
            return runs
    return None


def t_quantile(freedom: int) -> float:
    """Return Student's t for 95 %, two-sided, for 4 or more degrees of freedom (its expansion around the normal)."""
    z, v = _Z, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )
