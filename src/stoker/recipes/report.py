"""The report of a recipe's run: one self-contained HTML file without scripts, in the style of the run's page.

Everything that comes from the data is escaped. The page's security policy allows one style sheet, by its hash, and
pictures in the file itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.features import Feature
from stoker.recipes import drawing
from stoker.recipes.drawing import escape
from stoker.recipes.reading import TableReading
from stoker.recipes.rows import Rows
from stoker.recipes.scores import Result, Score, format_score, name_contender
from stoker.serve.signature import UNITS

# One value of an array: bytes or a number.
Cell: TypeAlias = Any

_MOST_CLASSES, _MISTAKES, _MOST_COLUMNS, _MOST_DOTS, _BINS = 24, 12, 12, 1_000, 10
_MOST_NAMED = 5
# An empty cell would look like a fault of the page.
_MISSING, _NO_CATEGORY = "<i>missing</i>", "<i>missing or new</i>"


def report(
    result: Result,
    answers: Array,
    test: Rows,
    features: Mapping[str, Feature],
    pictures: Sequence[bytes] | None = None,
) -> str:
    """Return the page.

    Args:
        result: the result, as in `result.json`.
        answers: the answers of the exported model for the test rows.
        test: the raw test rows.
        features: for a table: what the ids of its categories stand for.
        pictures: the pictures of the rows that `find_worst` returns, as PNG.
    """
    classes = result["classes"]
    verdict, data = result["verdict"], result["settings"]["data"]
    parts = [
        f'<header class="brand"><b>Stoker</b><span class="program">{escape(data)}</span></header>',
        f"<h1><strong>{escape(verdict[0].upper() + verdict[1:])}.</strong></h1>",
        f"<p>{escape(describe_choice(result))}</p>",
        _chips(result),
        _section("Against the baselines", _contenders(result)),
        _section("Learning curves", _curves(result)),
    ]
    if classes is None:
        parts.append(_section("Predicted and true", _scatter(answers, test.labels)))
    else:
        parts.append(
            _section("Which classes are mistaken for which", _confusion(answers, test.labels, classes))
        )
        parts.append(_section("Calibration", _calibration(answers, test.labels)))
    if result.get("importance"):
        parts.append(_section("What matters to it", _draw_importance(result)))
    parts.append(_section("The worst mistakes", _mistakes(answers, test, classes, features, pictures)))
    if result.get("reading"):
        parts.append(_section("How the table was read", _draw_reading(result["reading"])))
    return _page(data, "".join(parts))


def _draw_reading(reading: TableReading) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in reading["notes"])
    rows = [
        [escape(one["column"]), escape(one["read"] or "left out"), escape(one["note"])]
        for one in reading["columns"]
    ]
    return (f'<ul class="notes">{notes}</ul>' if notes else "") + _table(["column", "read as", ""], rows)


def find_worst(answers: Array, labels: Array) -> Array:
    """Return the rows with the worst mistakes, the worst first."""
    if answers.ndim == 1:
        wrong = np.abs(answers - labels)
        return np.argsort(-wrong, kind="stable")[:_MISTAKES]
    sure = answers[np.arange(len(labels)), labels]
    missed = np.flatnonzero(answers.argmax(1) != labels)
    return missed[np.argsort(sure[missed], kind="stable")][:_MISTAKES]


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _chips(result: Result) -> str:
    best = result["networks"].get(result["network"], {"epochs": 0})
    shown = {
        "training rows": f"{result['rows']['train']:,}",
        "test rows": f"{result['rows']['test']:,}",
        "held out": _name_split(result["settings"]),
        "exported": describe_model(result),
        "network": result["network"] or "none",
        "epochs": best["epochs"],
        "state": result["state"],
    }
    chips = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in shown.items()
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in list_doubts(result))
    return f'<dl class="chips">{chips}</dl>' + (f'<ul class="notes">{notes}</ul>' if notes else "")


def describe_model(result: Result) -> str:
    """Describe the exported model. In results from before there was a choice, it is the network."""
    shares = result.get("exported") or {"network": 1.0}
    if len(shares) == 1:
        return name_contender(next(iter(shares)))
    parts = [f"{share * 100:.0f} % {name}" for name, share in shares.items()]
    return f"a mix of {', '.join(parts[:-1])} and {parts[-1]}"


def describe_choice(result: Result) -> str:
    """Say in a sentence what the bundle holds and why; the test rows, which the verdict is about, decide nothing."""
    held = f"The bundle holds {describe_model(result)}"
    chosen = result.get("chosen_by") or {"losses": {}}
    losses, first = chosen["losses"], result["contenders"][0]["name"]
    others = {name: loss for name, loss in losses.items() if name != first}
    if first not in losses or not others:
        return f"{held}."
    second = min(others, key=lambda name: others[name])
    figures = (
        f"{format_score(losses[first])} against {format_score(others[second])} of {name_contender(second)}"
    )
    held += f", which was best on the validation rows ({chosen['metric']} {figures})"
    best = min(result["contenders"][1:], key=lambda one: float(one["behind"]["value"]))
    if Score.of(best["behind"]).high < 0:
        verb = "are" if best["name"].endswith("s") else "is"
        export = "" if best["name"] in losses else ", but cannot be exported"
        held += f"; on the test rows, {name_contender(best['name'])} {verb} better{export}"
    return f"{held}."


def list_doubts(result: Result) -> list[str]:
    """List reasons why the figures may be misleading, one sentence each."""
    found = list(result.get("cuts", ()))
    if result.get("learned_from_all_rows"):
        found.append(
            "The model in the bundle was trained again on all rows. The figures are those of the same model before it "
            "learned from the test rows."
        )
    if result["repeated"]:
        found.append(
            f"{result['repeated']:,} of the {result['rows']['test']:,} test rows are also among the training rows: "
            "the figures are too good."
        )
    if untested := result.get("untested"):
        names = ", ".join(repr(name) for name in untested[:_MOST_NAMED])
        more = f" and {len(untested) - _MOST_NAMED} more" if len(untested) > _MOST_NAMED else ""
        found.append(f"No test row has the class {names}{more}: the figures say nothing about it.")
    return found


def _name_split(settings: Mapping[str, object]) -> str:
    """Say how the held-out rows were chosen."""
    if settings.get("group"):
        return f"whole groups of {settings['group']}"
    return f"the latest by {settings['time_column']}" if settings.get("time_column") else "at random"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], best: int = -1) -> str:
    """Return a table of cells that are already HTML."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(
        f"<tr{' class=best' if number == best else ''}>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for number, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _contenders(result: Result) -> str:
    rows = result["contenders"]
    metrics = list(rows[0]["scores"])
    best = min(range(len(rows)), key=lambda number: rows[number]["behind"]["value"])
    cells = [
        [escape(row["name"]), *(escape(Score.of(row["scores"][metric])) for metric in metrics)]
        for row in rows
    ]
    lead = '<p class="lead">On the same test rows, which none of them has seen, with 95 % intervals in brackets.</p>'
    return lead + _table(["", *(escape(metric) for metric in metrics)], cells, best)


def _curves(result: Result) -> str:
    parts = [
        '<p class="lead">Loss by epoch:<i class="key one"></i>training<i class="key two"></i>validation</p>'
    ]
    for name, about in result["networks"].items():
        curves = about["curves"]
        if not curves:
            continue
        lines = {
            kind: [one.get(key, np.nan) for one in curves]
            for kind, key in (("one", "loss"), ("two", "val_loss"))
        }
        values = [value for line in lines.values() for value in line if np.isfinite(value)]
        chart = drawing.Chart((1, len(curves)), (0, max(values)), ("epoch", "loss"))
        for kind, line in lines.items():
            chart.line(list(enumerate(line, 1)), kind)
        parts.append(f"<h3>{escape(name)}</h3>{chart.svg(f'learning curves of {name}')}")
    return "".join(parts)


def _scatter(answers: Array, labels: Array) -> str:
    ends = float(min(answers.min(), labels.min())), float(max(answers.max(), labels.max()))
    chart = drawing.Chart(ends, ends, ("true", "predicted"))
    chart.line([(ends[0], ends[0]), (ends[1], ends[1])], "ideal")
    chart.dots(list(zip(labels[:_MOST_DOTS].tolist(), answers[:_MOST_DOTS].tolist(), strict=True)), "one")
    return chart.svg("predicted against true values")


def _confusion(answers: Array, labels: Array, classes: Sequence[str]) -> str:
    given = answers.argmax(1)
    counts = np.zeros((len(classes), len(classes)), int)
    np.add.at(counts, (labels, given), 1)
    if len(classes) <= _MOST_CLASSES:
        lead = '<p class="lead">A row for each true class, a column for each answer.</p>'
        return lead + drawing.matrix(counts, classes)
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:_MISTAKES]
    pairs = [divmod(int(place), len(classes)) for place in order]
    rows = [[escape(classes[a]), escape(classes[b]), str(counts[a, b])] for a, b in pairs if counts[a, b]]
    return _table(["true", "mistaken for", "times"], rows)


def _calibration(answers: Array, labels: Array) -> str:
    """Show how often the model is right, by how sure it is."""
    sure, right = answers.max(1), answers.argmax(1) == labels
    place = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    bins = [place == one for one in range(_BINS) if (place == one).any()]
    points = [(float(sure[rows].mean()), float(right[rows].mean())) for rows in bins]
    counts = [int(rows.sum()) for rows in bins]
    chart = drawing.Chart((0, 1), (0, 1), ("how sure it is", "how often it is right"))
    chart.line([(0, 0), (1, 1)], "ideal")
    for point, rows in zip(points, counts, strict=True):
        # The larger the dot, the more rows it stands for, as a single row says little.
        chart.dots([point], "one", 2 + 8 * float(np.sqrt(rows / len(labels))))
    off = sum(abs(x - y) * rows for (x, y), rows in zip(points, counts, strict=True)) / len(labels)
    lead = (
        '<p class="lead">On the dashed line, the model is right as often as it claims. Larger dots stand for more '
        f"rows. It is off by {off:.3f} on average.</p>"
    )
    return lead + chart.svg("calibration")


def _draw_importance(result: Result) -> str:
    metric = next(iter(result["contenders"][0]["scores"]))
    lead = (
        f'<p class="lead">How much worse {escape(metric)} gets when the values of a column are shuffled.</p>'
    )
    return lead + drawing.bars(result["importance"][:_MOST_COLUMNS], "importance of the columns")


def _mistakes(
    answers: Array,
    test: Rows,
    classes: Sequence[str] | None,
    features: Mapping[str, Feature],
    pictures: Sequence[bytes] | None,
) -> str:
    rows = find_worst(answers, test.labels)
    if not len(rows):
        return "<p>There are none: every test row is right.</p>"
    if pictures is not None:
        figures = [
            f'<figure><img alt="" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
            f"<figcaption>{', mistaken for '.join(_cells(answers, test.labels, classes, row))}</figcaption></figure>"
            for row, picture in zip(rows, pictures, strict=True)
        ]
        return f'<div class="gallery">{"".join(figures)}</div>'
    if not isinstance(test.inputs, Mapping):
        cells = [
            [*_cells(answers, test.labels, classes, row), _describe_value(test.inputs[row], 300)]
            for row in rows
        ]
        return _table(["true", "answered", "text"], cells)
    names = list(test.inputs)[:_MOST_COLUMNS]
    cells = [
        [
            *_cells(answers, test.labels, classes, row),
            *(_describe_cell(features[name], test.inputs[name][row]) for name in names),
        ]
        for row in rows
    ]
    return _table(["true", "answered", *(escape(name) for name in names)], cells)


def _cells(answers: Array, labels: Array, classes: Sequence[str] | None, row: int) -> list[str]:
    if classes is None:
        return [_describe_value(value, 0) for value in (labels[row], answers[row])]
    given = int(answers[row].argmax())
    return [escape(classes[labels[row]]), f"{escape(classes[given])} ({answers[row, given]:.2f})"]


def _describe_cell(feature: Feature, value: Cell) -> str:
    """Return a cell of a table as HTML, as it appears in the file."""
    if value != value:
        return _MISSING
    if feature.kind == "category":
        words = (feature.vocabulary or ())[int(value)]
        return (_cut(words, 60) or _MISSING) if int(value) else _NO_CATEGORY
    if feature.kind == "truth":
        return "true" if value else "false"
    if feature.kind == "date" and feature.unit:
        unit = UNITS.get(feature.unit, feature.unit)
        text = str(np.array(int(value)).astype(f"datetime64[{unit}]"))
        return f"<time>{text.removesuffix('T00:00:00').replace('T', ' ')}</time>"
    return _describe_value(value, 60)


def _describe_value(value: Cell, most: int) -> str:
    if isinstance(value, bytes):
        return _cut(value.decode("utf-8", "replace"), most) if value else _MISSING
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.6g}"


def _cut(words: str, most: int) -> str:
    return escape(words if len(words) <= most else words[: most - 1] + "…")


def _page(title: str, body: str) -> str:
    style = (
        resources.files("stoker.doctor.report.page").joinpath("assets/page.css").read_text(encoding="utf-8")
    )
    # On the run's page, a script sets the theme; this page has no script, and follows the system.
    dark = re.search(r':root\[data-theme="dark"\] (\{.*?\n\})', style, re.DOTALL)
    if dark is not None:
        style += f"\n@media (prefers-color-scheme: dark) {{ :root {dark[1]} }}\n"
    style += resources.files("stoker.recipes").joinpath("report.css").read_text(encoding="utf-8")
    sign = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{sign}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>Stoker: {escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
