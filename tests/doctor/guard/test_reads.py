"""Every way of reading a tensor is caught at its line, on the CPU and on the software GPU; the rest is not."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from tests.doctor.guard.conftest import Facts
from tests.doctor.guard.ways import LATE, NO_READS, READS, outcome


def test_the_table_is_long() -> None:
    assert len(READS) >= 25
    assert not READS.keys() & NO_READS.keys()


@pytest.mark.parametrize("way", READS)
def test_a_read_is_caught_at_its_line(way: str) -> None:
    seen = outcome(READS[way])
    assert seen["caught"]
    assert seen["inside"]
    assert seen["stops"] == (way not in LATE)
    assert len(seen["message"].splitlines()) <= 20


@pytest.mark.parametrize("way", NO_READS)
def test_what_is_no_read_is_not_caught(way: str) -> None:
    assert outcome(NO_READS[way]) == {"caught": False}


@pytest.mark.slow
@pytest.mark.parametrize("way", READS)
def test_a_read_is_caught_at_its_line_on_a_device(way: str, on_software_gpu: Facts) -> None:
    seen = on_software_gpu("ways_on_device")[way]
    assert seen["caught"]
    assert seen["inside"]
    assert seen["stops"] == (way not in LATE)
    assert "on GPU:0" in seen["message"]


@pytest.mark.parametrize("way", NO_READS)
def test_what_is_no_read_is_not_caught_on_a_device(way: str, on_software_gpu: Facts) -> None:
    assert on_software_gpu("ways_on_device")[way] == {"caught": False}
