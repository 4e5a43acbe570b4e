"""The allocator: pieces are rounded, split, joined again, and refused."""

from __future__ import annotations

import pytest

from stoker.doctor.forecast.allocator import Allocator, NoRoomError, replay

MIB = 1 << 20


def test_a_piece_is_a_multiple_of_256_bytes() -> None:
    memory = Allocator(MIB, grows=False)
    memory.allocate(1)
    memory.allocate(257)
    assert memory.in_use == 256 + 512


def test_a_free_piece_is_given_whole_if_little_would_be_left() -> None:
    memory = Allocator(MIB, grows=False)
    hole = memory.allocate(1000)
    memory.allocate(256)
    memory.free(hole)
    # 1,024 bytes are free: half of them would be left of a piece of 512, less of one of 768.
    assert memory.allocate(768) == hole
    assert memory.in_use == 1024 + 256
    memory.free(hole)
    assert memory.allocate(512) == hole
    assert memory.in_use == 512 + 256


def test_free_neighbours_become_one_piece() -> None:
    memory = Allocator(1024, grows=False)
    pieces = [memory.allocate(256) for _ in range(4)]
    with pytest.raises(NoRoomError):
        memory.allocate(256)
    memory.free(pieces[0])
    memory.free(pieces[2])
    with pytest.raises(NoRoomError):
        memory.allocate(512)
    memory.free(pieces[1])
    assert memory.allocate(768) == pieces[0]


def test_memory_that_grows_has_regions_that_no_piece_crosses() -> None:
    memory = Allocator(6 * MIB, grows=True)
    first = memory.allocate(MIB)
    # The first region of 2 MiB has 1 MiB left. The next has 4 MiB, of which the rest would be less than what is asked.
    memory.allocate(3 * MIB)
    assert memory.in_use == 5 * MIB
    memory.allocate(MIB)
    with pytest.raises(NoRoomError):
        memory.allocate(256)
    memory.free(first)
    assert memory.allocate(MIB) == first


def test_an_empty_region_is_given_back_for_a_larger_one() -> None:
    memory = Allocator(4 * MIB, grows=True)
    memory.free(memory.allocate(MIB))
    memory.allocate(4 * MIB)
    assert memory.in_use == 4 * MIB


def test_a_replay_tells_the_peak_and_who_is_there_then() -> None:
    played = replay([0, 1, ~0, 2, ~1, ~2], [1000, 600, 100], MIB, grows=False)
    assert played is not None
    assert played.peak_bytes == 1024 + 768
    assert played.at_peak == {0: 1024, 1: 768}
    assert replay([0, 1], [MIB, 1], MIB, grows=False) is None
