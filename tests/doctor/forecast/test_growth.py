"""From the traces of small batches to any batch."""

from __future__ import annotations

import pytest

from stoker.doctor.forecast.growth import ScalingStep, fit_curve
from stoker.doctor.forecast.trace import StepTrace, TracedAllocation, TracedOwner
from stoker.errors import UsageError

WEIGHTS = TracedOwner("weights", "dense", "train.py", 3)
HIDDEN = TracedOwner("activations", "dense", "train.py", 3)
KIB = 1024


def trace(rows: int, per_row: int = KIB) -> StepTrace:
    """Weights that stay, two activations, one of which goes before the other comes."""
    allocations = [
        TracedAllocation("w", "persist", "[256]", 100 * KIB, 0),
        TracedAllocation("dense", "output", "", per_row * rows, 1),
        TracedAllocation("relu", "output", "", 2 * per_row * rows, 1),
    ]
    return StepTrace(rows, 0, 3, allocations, [0, 1, ~1, 2, ~2], [WEIGHTS, HIDDEN])


def test_a_line_goes_through_what_was_measured() -> None:
    curve = fit_curve([(2, 300), (4, 500), (8, 900)])
    assert curve.at(100) == 10_100
    assert curve.residual == pytest.approx(0.0, abs=1e-6)


def test_a_square_is_found_where_every_row_meets_every_other() -> None:
    curve = fit_curve([(2, 4 * 4), (4, 4 * 16), (8, 4 * 64)])
    assert curve.at(1000) == 4_000_000
    assert curve.per_square == pytest.approx(4.0)


def test_what_grows_more_slowly_than_a_line_is_a_doubt() -> None:
    curve = fit_curve([(2, 1000), (4, 1800), (8, 2000)])
    assert curve.per_square == 0.0
    assert curve.residual > 100


def test_the_peak_and_its_owners_at_another_batch() -> None:
    step = ScalingStep([trace(8), trace(2), trace(4)])
    assert step.peak_at(1000) == (100 + 2000) * KIB
    assert step.tensors_at(1000) == (100 + 2000) * KIB
    assert step.uncertainty == pytest.approx(0.0, abs=1e-9)
    hidden, weights = step.owners_at(1000)
    assert (hidden.owner, hidden.bytes) == (HIDDEN, 2000 * KIB)
    assert hidden.bytes_per_row == pytest.approx(2 * KIB)
    assert (weights.owner, weights.bytes) == (WEIGHTS, 100 * KIB)
    assert weights.bytes_per_row == pytest.approx(0.0)


def test_allocations_of_one_name_are_told_apart_by_their_sizes() -> None:
    def copies(rows: int, sizes: list[int]) -> StepTrace:
        made = [TracedAllocation("Recv", "dynamic", "[0]", size, 0) for size in sizes]
        return StepTrace(rows, 0, 3, made, list(range(len(made))), [WEIGHTS])

    # A constant of 700 bytes, and two that grow, each time in another order.
    step = ScalingStep([copies(2, [700, 20, 200]), copies(4, [400, 700, 40]), copies(8, [80, 800, 700])])
    assert step.tensors_at(100) == 700 + 1000 + 10_000
    assert step.uncertainty == pytest.approx(0.0, abs=1e-9)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    step = ScalingStep([trace(2), trace(4), trace(8)])
    largest = step.largest_batch(500 * KIB)
    assert largest == 200
    assert step.fits(largest, 500 * KIB)
    assert not step.fits(largest + 1, 500 * KIB)


def test_a_device_may_be_too_small_for_one_row() -> None:
    assert ScalingStep([trace(2), trace(4)]).largest_batch(100 * KIB) == 0


def test_a_batch_that_changes_nothing_is_no_batch() -> None:
    with pytest.raises(UsageError, match="no allocation of the program grows"):
        ScalingStep([trace(2, per_row=0), trace(4, per_row=0)]).check_growth()


def test_a_trace_is_read_as_it_was_written() -> None:
    assert StepTrace.from_json(trace(4).to_json()) == trace(4)
