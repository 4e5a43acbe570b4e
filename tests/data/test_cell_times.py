"""Times of the day and durations, read as seconds."""

from __future__ import annotations

import pytest

from stoker.data.cell_guesses import guess_reading
from stoker.data.cell_times import read_time
from stoker.data.cells import TIME, BadCellError, CellReading


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6:02 PM", 18 * 3600 + 120),
        ("12:00 am", 0),
        ("12:30pm", 12.5 * 3600),
        (" 18:02 ", 18 * 3600 + 120),
        ("1:34:24", 5664),
        ("100:00:00.5", 360_000.5),
        ("1h 34m", 5640),
        ("2 hours 5 min 3.5 s", 7503.5),
        ("45m10s", 2710),
    ],
)
def test_forms(text: str, seconds: float) -> None:
    assert read_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "90m", "2h", "3:2", "1:75", "13:00 PM", "0:30 am", "1:2:3", "a 1:30", "5"]
)
def test_what_is_no_time(text: str) -> None:
    assert read_time(text) is None


def test_a_column_of_times_is_guessed_and_plain_numbers_are_seconds() -> None:
    guess = guess_reading({"1:34:24": 5, "0h 50m": 3, "N/A": 1, "2:10:00": 4})
    assert guess is not None
    assert guess.reading == CellReading("number", affix=TIME)
    assert guess.how == "time, in seconds"
    read = CellReading.from_json(guess.reading.to_json()).read
    assert (read("1:34:24"), read("0h 50m"), read("90"), read("n/a")) == (5664, 3000, 90, None)
    with pytest.raises(BadCellError):
        read("soon")


def test_scores_and_ratios_stay_words() -> None:
    assert guess_reading({"3:2": 4, "1:0": 3, "2:2": 3}) is None
    mixed = guess_reading({"1:30": 4, "1:40": 2, "late": 2, "later": 2})
    assert mixed is not None
    assert mixed.how == "60 % of its cells are times, others are not, such as 'late'"
