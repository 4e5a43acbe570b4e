"""What a report and the terminal show of values, names and scores."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.data.features import Feature
from stoker.recipes.directory import align
from stoker.recipes.drawing import format_short
from stoker.recipes.report import describe_choice, report
from stoker.recipes.rows import Rows
from tests.doctor.report.page.browser import CHROMIUM, DRIVER, MISSING, browser

LONG = "the area of the whole property in square feet"
FEATURES = {
    one.name: one
    for one in (
        Feature("town", "category", "int32", ("[UNK]", "Rome", "")),
        Feature(LONG, "number", "float32"),
        Feature("built", "date", "int64", unit="days"),
        Feature("sold", "date", "float64", unit="seconds"),
        Feature("garden", "truth", "float32"),
    )
}
INPUTS = {
    "town": np.array([1, 2, 0]),
    LONG: np.array([152.5, np.nan, 2_500_000.0]),
    "built": np.array([17079, -5932, 0]),
    "sold": np.array([86400.0 * 365 + 3661, np.nan, 0.0]),
    "garden": np.array([1.0, 0.0, np.nan]),
}
SCORE = {"value": 92_290.0, "low": 80_000.0, "high": 1_234_567.0}


def page(classes: list[str] | None, answers: Any, labels: Any) -> str:
    result: dict[str, Any] = {
        "classes": classes,
        "verdict": "linear wins",
        "settings": {"data": "homes.csv"},
        "rows": {"train": 9, "test": 3},
        "repeated": 0,
        "network": "plain",
        "networks": {"plain": {"epochs": 1, "curves": [{"loss": 92_290.0, "val_loss": 1.0}]}},
        "state": "finished",
        "importance": [[LONG, 127_000.0], ["town", -3.04]],
        "contenders": [{"name": "network", "scores": {"RMSE": SCORE}, "behind": {**SCORE, "value": 0.0}}],
    }
    return report(result, np.array(answers), Rows(INPUTS, np.array(labels)), FEATURES)


@pytest.fixture(scope="module")
def numbers() -> str:
    return page(None, [304_400.0, 81_000.0, 0.00123], [92_290.0, 81_000.0, 2_000_000.0])


@pytest.fixture(scope="module")
def classes() -> str:
    names = ["Siamese cat", f"{LONG}, {LONG}", "hamster & co"]
    return page(names, [[0.1, 0.6, 0.3], [0.2, 0.7, 0.1], [0.5, 0.3, 0.2]], [0, 1, 2])


def contender(name: str, behind: tuple[float, float, float]) -> dict[str, Any]:
    return {"name": name, "behind": dict(zip(("value", "low", "high"), behind, strict=True))}


@pytest.mark.parametrize(
    ("losses", "others", "said"),
    [
        (
            {"network": 0.61, "linear": 0.64, "boosted trees": 0.7},
            [contender("linear", (-0.06, -0.1, -0.02))],
            "The bundle holds the network, which was best on the validation rows (log loss 0.610 against 0.640 of "
            "linear); on the test rows, linear is better.",
        ),
        (
            {"network": 0.61, "linear": 0.64},
            [contender("boosted trees", (-0.06, -0.1, -0.02))],
            "The bundle holds the network, which was best on the validation rows (log loss 0.610 against 0.640 of "
            "linear); on the test rows, boosted trees are better, but cannot be exported.",
        ),
        (
            {"network": 0.61, "linear": 0.64},
            [contender("linear", (-0.06, -0.1, 0.02))],
            "The bundle holds the network, which was best on the validation rows (log loss 0.610 against 0.640 of "
            "linear).",
        ),
        ({}, [contender("linear", (-0.06, -0.1, -0.02))], "The bundle holds the network."),
        ({"network": 0.61}, [contender("constant", (0.1, 0.0, 0.2))], "The bundle holds the network."),
    ],
)
def test_why_the_bundle_holds_a_model(losses: dict[str, float], others: list[Any], said: str) -> None:
    result = {
        "exported": {"network": 1.0},
        "chosen_by": {"metric": "log loss", "losses": losses},
        "contenders": [contender("network", (0.0, 0.0, 0.0)), *others],
    }
    assert describe_choice(result) == said


def test_why_the_bundle_holds_a_mix() -> None:
    result = {
        "exported": {"network": 0.75, "linear": 0.25},
        "chosen_by": {"metric": "RMSE", "losses": {"network": 1200.0, "linear": 1500.0, "ensemble": 1100.0}},
        "contenders": [contender("ensemble", (0.0, 0.0, 0.0)), contender("linear", (0.1, 0.0, 0.2))],
    }
    assert describe_choice(result) == (
        "The bundle holds a mix of 75 % network and 25 % linear, which was best on the validation rows "
        "(RMSE 1,100 against 1,200 of the network)."
    )


def test_the_page_says_what_the_bundle_holds(classes: str) -> None:
    assert "<p>The bundle holds the network.</p>" in classes


def cells(text: str) -> list[list[str]]:
    """The rows of the page's last table."""
    body = text.rpartition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall("<td>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]


def test_the_worst_mistakes_are_as_in_the_file(numbers: str) -> None:
    assert cells(numbers) == [
        [
            "2,000,000",
            "0.00123",
            "<i>missing or new</i>",
            "2,500,000",
            "<time>1970-01-01</time>",
            "<time>1970-01-01</time>",
            "<i>missing</i>",
        ],
        [
            "92290",
            "304,400",
            "Rome",
            "152.5",
            "<time>2016-10-05</time>",
            "<time>1971-01-01 01:01:01</time>",
            "true",
        ],
        [
            "81000",
            "81000",
            "<i>missing</i>",
            "<i>missing</i>",
            "<time>1953-10-05</time>",
            "<i>missing</i>",
            "false",
        ],
    ]


def test_no_number_has_an_exponent(numbers: str, classes: str) -> None:
    assert re.findall(r">[^<]*\de[+-]\d", numbers + classes) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (92_290.0, "92.3k"),
        (519_000.0, "519k"),
        (999_900.0, "1M"),
        (1.27e6, "1.27M"),
        (-3.2e9, "-3.2B"),
        (5e16, "50000T"),
        (41.0, "41"),
        (0.0359, "0.0359"),
        (0.00012, "0.00012"),
        (0.0, "0"),
    ],
)
def test_ticks_are_short(value: float, shown: str) -> None:
    assert format_short(value) == shown


def test_the_columns_of_a_confusion_matrix_have_names(classes: str) -> None:
    chart = classes.partition('aria-label="confusion matrix"')[2].partition("</svg>")[0]
    names = re.findall(
        r'<text class="tick"[^>]*(transform)?[^>]*>(?:<title>(.*?)</title>)?(.*?)</text>', chart
    )
    assert [(title or name) for _, title, name in names] == 2 * [
        "Siamese cat", f"{LONG}, {LONG}", "hamster &amp; co",
    ]  # fmt: skip
    assert chart.count("rotate(-45") == 3


def test_a_long_name_is_cut_and_can_be_read(classes: str) -> None:
    assert f"<title>{LONG}</title>{LONG[:39]}…</text>" in classes


def test_columns_on_the_terminal_never_run_together() -> None:
    wide = "1,234,567 (1,200,000 to 1,300,000)"
    lines = align([["", "RMSE", "MAE"], ["network", wide, wide], ["boosted trees, tuned", "1", "2"]])
    assert lines == [
        "                       RMSE                                 MAE",
        f"network                {wide}   {wide}",
        "boosted trees, tuned   1                                    2",
    ]


OUTSIDE = """return [...document.querySelectorAll("svg text")].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.closest("svg").getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)
def test_no_text_of_a_chart_is_clipped_in_a_browser(numbers: str, classes: str, tmp_path: Path) -> None:
    with browser() as opened:
        for text in (numbers, classes):
            (tmp_path / "report.html").write_text(text, encoding="utf-8")
            opened.open(tmp_path / "report.html")
            assert opened.script("document.querySelectorAll('svg text').length") > 10
            assert opened.script(OUTSIDE) == []
            assert opened.problems() == []
