"""Send recorded requests to a new bundle: what changed, by how much, on which rows.

    stoker serve bundle/ --record 0.01                  # keeps one request in a hundred with its answers
    stoker replay .stoker/answers new-bundle/
    stoker replay .stoker/answers new-bundle/ --model pets --allow 0.5% --rows 50 --json

If both bundles name a label, a row has changed if its label has; otherwise if a text or a whole number has, or if
another number is off by more than --tolerance. The last line says whether more rows changed than --allow: "same",
"different" or "not enough yet", and how often that is wrong. Exit code: 0; 1 if the answers are different, or a request
does not fit the new bundle; 2 if there are no recorded answers, or the bundle does not work.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.cli._bulk import open_predictor
from stoker.cli._options import add_json, any_path, data_path, read_percentage
from stoker.cli._trust import add_trust
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.serve.rollout.recordings import as_json, read_recordings_at
from stoker.units import percent, printable, quantity

if TYPE_CHECKING:
    from stoker.serve.rollout.replay import ChangedRow, OutputSummary, ReplaySummary

_WIDEST = 100
_QUANTILE = 0.99


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker replay`."""
    parser.add_argument(
        "answers",
        type=data_path,
        metavar="ANSWERS",
        help="recorded answers: a file, or a directory such as .stoker/answers",
    )
    parser.add_argument(
        "bundle", type=any_path, metavar="BUNDLE", help="the new bundle, or a run's directory"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="only requests to this model")
    parser.add_argument(
        "--allow", default="1%", metavar="PERCENT", help="the share of rows that may change (1%%)"
    )
    parser.add_argument(
        "--tolerance",
        default="1%",
        metavar="PERCENT",
        help="how far a number may be off, as a share of its output's largest number (1%%)",
    )
    parser.add_argument(
        "--rows", type=int, default=10, metavar="N", help="how many changed rows to show (10)"
    )
    add_trust(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Send all requests again."""
    if args.rows < 0:
        raise UsageError(f"--rows {args.rows} must be at least 0")
    from stoker.serve.rollout.evidence import AgreementTest, Conclusion

    test = AgreementTest(read_percentage(args.allow, "--allow"))
    tolerance = read_percentage(args.tolerance, "--tolerance")
    requests = read_recordings_at(Path(args.answers), args.model)
    predictor = open_predictor(args)
    from stoker.serve.rollout.replay import Replay

    found = Replay(predictor, test, tolerance, args.rows).run(requests)
    if args.json:
        print_answer(json.dumps(_to_json(found)))
    else:
        _print_summary(found)
    return int(test.conclusion is Conclusion.DIFFERENT or bool(found.misfits))


def _print_summary(found: ReplaySummary) -> None:
    versions = ", ".join(str(one) for one in sorted(found.versions))
    print_answer(
        f"{quantity(found.requests, 'request')} with {quantity(found.rows, 'row')} sent again"
        + (f", first answered by version {versions}" if versions else "")
    )
    if found.outputs:
        print_answer(
            f"\n{'output':<18}{'rows changed':>20}{'off by, mean':>14}{'99 % of rows':>14}{'largest':>10}"
        )
    for name, one in found.outputs.items():
        print_answer(_describe_output(name, one))
    if found.unrecorded:
        print_answer(
            f"\n{quantity(found.unrecorded, 'request')} left out: too many values to be recorded "
            "(stoker serve --record-values)"
        )
    for reason, count in found.misfits.most_common():
        print_answer(f"\n{quantity(count, 'request')} cannot be compared: {printable(reason)}")
    if found.shown:
        print_answer("\nchanged most:")
    for row in found.shown:
        print_answer(_describe_row(row))
    print_answer(f"\n{found.test.describe()}")


def _describe_output(name: str, one: OutputSummary) -> str:
    share = f"{one.changed:,} ({percent(one.changed / max(1, one.rows))})"
    distances = (one.mean_distance(), one.distance(_QUANTILE), one.distance(1.0))
    mean, most, largest = ("" if value is None else f"{value:.3g}" for value in distances)
    return f"{printable(name):<18}{share:>20}{mean:>14}{most:>14}{largest:>10}".rstrip()


def _describe_row(row: ChangedRow) -> str:
    pairs = [(name, old, row.after[name]) for name, old in row.before.items()]
    changed = ", ".join(
        f"{name} {_shorten(old)} -> {_shorten(new)}" for name, old, new in pairs if old != new
    )
    inputs = ", ".join(f"{name} {_shorten(value)}" for name, value in row.inputs.items())
    return printable(f"  {row.file}:{row.line} row {row.row}: {changed}\n      of {inputs}", lines=True)


def _shorten(value: object) -> str:
    text = json.dumps(as_json(_round(value)), ensure_ascii=False)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _round(value: object) -> object:
    """Round numbers to as many digits as people read."""
    if isinstance(value, list):
        return [_round(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _to_json(found: ReplaySummary) -> dict[str, object]:
    test = found.test
    return {
        "conclusion": test.conclusion.value,
        "allowed": test.allowed,
        "error": test.error,
        "requests": found.requests,
        "rows": found.rows,
        "changed": found.changed,
        "versions": {str(number): count for number, count in found.versions.items()},
        "unrecorded": found.unrecorded,
        "misfits": dict(found.misfits),
        "outputs": {
            name: {
                "rows": one.rows,
                "changed": one.changed,
                "off_mean": as_json(one.mean_distance()),
                "off_p99": as_json(one.distance(_QUANTILE)),
                "off_largest": as_json(one.distance(1.0)),
            }
            for name, one in found.outputs.items()
        },
        "changed_rows": [_row_to_json(row) for row in found.shown],
    }


def _row_to_json(row: ChangedRow) -> dict[str, object]:
    sides = {
        side: {name: as_json(value) for name, value in values.items()}
        for side, values in (("inputs", row.inputs), ("before", row.before), ("after", row.after))
    }
    return {"file": row.file, "line": row.line, "row": row.row, "off": as_json(row.distance), **sides}
