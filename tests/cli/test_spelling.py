"""What the Python API says of its arguments, in the words of a command."""

from __future__ import annotations

import argparse

import pytest

from stoker.cli._options import separator
from stoker.cli._spelling import respell, respell_errors
from stoker.errors import ArgumentError, UsageError

ARGS = argparse.Namespace(
    data="d",
    target="y",
    columns=None,
    sep=None,
    encoding="utf8",
    missing=None,
    group=None,
    time_column=None,
    seed=0,
    time=None,
)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("seed=-1 must be at least 0", "--seed -1 must be at least 0"),
        ("give sep=';' if that", "give --sep ';' if that"),
        ("such as encoding='latin-1' or 'utf-16'", "such as --encoding 'latin-1' or 'utf-16'"),
        ("name the columns you want with columns=[...]", "name the columns you want with --columns"),
        ("group='a' and time_column='b': one", "--group 'a' and --time-column 'b': one"),
        ("time='soon': give a duration", "--time 'soon': give a duration"),
        ("column='a' and label='a' must be two", "column='a' and --target 'a' must be two"),
        ("label: there is no column 'Y'", "--target: there is no column 'Y'"),
        ("time: there is no column 'Y'", "--time-column: there is no column 'Y'"),
        ("group or time: there is no column 'Y'", "--group or --time-column: there is no column 'Y'"),
        ("label: y holds text that differs", "--target: y holds text that differs"),
        (
            "correct it, or read the column with types={'x': 'category'}",
            "correct it, or leave the column out (--columns)",
        ),
        (
            "correct it, or read the column with types={'y': 'category'}",
            "correct it, or leave those rows out",
        ),
        ("take it as missing with missing='?', correct", "take it as missing with --missing '?', correct"),
        ("as missing with missing=['?', 'n.a.'], or", "as missing with --missing '?,n.a.', or"),
        # What is not an argument stays as it is: other words, parts of paths, a file called as one.
        ("batch_size=0 must", "batch_size=0 must"),
        ("runs/seed=3/t.csv has no rows", "runs/seed=3/t.csv has no rows"),
        ("seed=3/t.csv has no rows", "seed=3/t.csv has no rows"),
        ("data: 20 rows have no label", "data: 20 rows have no label"),
    ],
)
def test_arguments_become_options(said: str, wanted: str) -> None:
    assert respell(said, ARGS) == wanted


def test_a_tab_is_written_as_it_is_shown() -> None:
    assert respell("give sep='\\t' if", ARGS) == "give --sep '\\t' if"
    assert [separator(text) for text in (r"\t", "\t", ";;")] == ["\t", "\t", ";;"]


def test_other_errors_pass() -> None:
    with pytest.raises(UsageError, match="--seed 1 is"), respell_errors(ARGS):
        raise ArgumentError("seed=1 is")
    with pytest.raises(KeyError), respell_errors(ARGS):
        raise KeyError("seed=1")
