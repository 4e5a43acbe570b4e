"""Sizes and times for people."""

from __future__ import annotations

import pytest

from stoker.units import alternatives, bytes_of, duration, percent, quantity, size, times


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1200, "1.2 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (5 * 1024**3, "5.0 GiB"),
        (3 * 1024**5, "3,072.0 TiB"),
    ],
)
def test_sizes_are_in_powers_of_1024(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("512 B", 512),
        ("1 KiB", 1024),
        ("1.5MiB", 1572864),
        ("16GB", 16 * 10**9),
        (" 2 kB ", 2000),
        ("2 TiB", 2 * 1024**4),
        ("512", None),
        ("4 K", None),
        ("MiB", None),
        ("-1 MiB", None),
        ("1 mib", None),
    ],
)
def test_sizes_are_read_with_their_unit(text: str, count: int | None) -> None:
    assert bytes_of(text) == count


def test_what_is_written_is_read_back() -> None:
    for count in (1024, 1536, 10 * 1024**2, 7 * 1024**3):
        assert bytes_of(size(count)) == count


@pytest.mark.parametrize(
    ("seconds", "text"), [(5.0, "5.00 s"), (0.1, "0.10 s"), (0.0123, "12.3 ms"), (0.0, "0.0 ms"), (None, "?")]
)
def test_times(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_things_are_counted_in_english() -> None:
    assert [quantity(n, "row") for n in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]


def test_alternatives_are_a_list_with_commas() -> None:
    words = (".csv", ".tsv", ".txt")
    assert [alternatives(words[:n]) for n in (1, 2, 3)] == [".csv", ".csv or .tsv", ".csv, .tsv or .txt"]


def test_shares_are_written_as_people_write_them() -> None:
    shares = (0, 1e-9, 0.0000123, 0.01, 0.0384, 0.0996, 0.25, 0.994, 0.99999, 1)
    assert [percent(share) for share in shares] == [
        *("0 %", "0.0000001 %", "0.0012 %", "1 %", "3.8 %", "10 %", "25 %", "99 %", "99.9 %", "100 %"),
    ]


def test_factors() -> None:
    assert [times(n) for n in (1.0, 1.04, 1.25, 3.14, 27.4, 0.5)] == [
        "1.00x",
        "1.04x",
        "1.2x",
        "3.1x",
        "27x",
        "0.5x",
    ]
