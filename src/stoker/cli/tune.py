"""Measure a tf.data pipeline stage by stage, and show how fast it could be with the same elements.

    stoker tune pipeline.py:make_dataset                # a function without arguments, or a dataset
    stoker tune pipeline.py:make_dataset --step 820     # what uses it takes 820 elements a second
    stoker tune pipeline.py:make_dataset --json

Nothing is written: `stoker.tune(ds)` makes the changes in the program. Where a change can be made in the source, the
diff is shown. If a run of `stoker run` has found that the pipeline is too slow, the speed-up measured here becomes the
price of that finding.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stoker.chatter import quiet_tensorflow
from stoker.cli._options import add_json, local_path
from stoker.doctor.stalls import map_without_parallel_calls, missing_prefetch
from stoker.errors import StokerError, UsageError, describe_error, suggest
from stoker.printing import print_answer
from stoker.records import Finding, plain

# Changes of the tuner that `stoker fix` can write, each with the kind of finding that it repairs.
_IN_SOURCE = {
    "prefetch": missing_prefetch.STALL.slug,
    "parallel calls": map_without_parallel_calls.STALL.slug,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker tune`."""
    parser.add_argument(
        "pipeline",
        type=local_path,
        metavar="FILE:NAME",
        help="a Python file, and the function in it that makes the dataset",
    )
    parser.add_argument(
        "--step", type=float, metavar="RATE", help="elements per second that the consumer uses"
    )
    parser.add_argument(
        "--allow",
        choices=("exact", "last-place"),
        default="exact",
        help="exact: equal in every bit (default); last-place: floats may differ by rounding",
    )
    parser.add_argument(
        "--memory",
        default="auto",
        help='how much memory a cache may use, such as "2 GiB" (default: a quarter of what is free)',
    )
    add_json(parser, "print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Make the dataset, tune it, and print the report."""
    path, name = _parts(args.pipeline)
    dataset, written = _dataset(path, name)
    from stoker.data.tuning.tuner import tune
    from stoker.doctor.pricing.tuned import price_tuned_input
    from stoker.doctor.report import tuning as shown

    report = tune(dataset, args.step, args.allow, args.memory).tuning
    diffs = list(_diffs(path, {change.name for change in report.changes}))
    priced = price_tuned_input(path, name, report.row().gain) if report.changes else None
    if args.json:
        answer = {"pipeline": args.pipeline, **report.as_json(), "diff": "".join(diffs)}
        if priced is not None:
            answer["run"] = priced[0].id
            answer["prices"] = [_as_json(finding) for finding in priced[1]]
        print_answer(json.dumps(answer))
        return 0
    print_answer(shown.text(report.row()))
    if priced is not None:
        print_answer("\n".join(["", *shown.prices(*priced)]))
    if diffs:
        print_answer("\nIn the source\n")
        print_answer("".join(diffs), end="")
    if report.changes:
        print_answer(f"\nTo apply all of it: stoker.tune({written})")
    return 0


def _as_json(finding: Finding) -> dict[str, Any]:
    price = None if finding.what_if is None else plain(finding.what_if)
    return {"kind": finding.kind, "file": finding.file, "line": finding.line, "what_if": price}


def _parts(given: str) -> tuple[Path, str]:
    path, _, name = given.rpartition(":")
    if not path or not name.isidentifier():
        raise UsageError(
            f"{given!r} does not name a pipeline: give a file and a function, pipeline.py:make_dataset"
        )
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    return Path(path), name


def _dataset(path: Path, name: str) -> tuple[Any, str]:
    """Return the dataset, and how a program would write it."""
    try:
        with quiet_tensorflow():
            import tensorflow as tf
    except ModuleNotFoundError:
        raise UsageError("stoker tune needs TensorFlow: install it with pip install 'stoker[cpu]'") from None
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = module
    _call(f"{path} cannot be imported", spec.loader.exec_module, module)
    if not hasattr(module, name):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise UsageError(f"{path} has no {name}{suggest(name, known)}")
    found = getattr(module, name)
    if callable(found) and not isinstance(found, tf.data.Dataset):
        found, name = _call(f"{name} of {path} failed", found), f"{name}()"
    if not isinstance(found, tf.data.Dataset):
        raise UsageError(f"{name} of {path} gives {type(found).__name__}, not a tf.data.Dataset")
    return found, name


def _call(what: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except StokerError:
        raise
    except Exception as error:
        raise UsageError(f"{what}: {describe_error(error)}") from error


def _diffs(path: Path, changes: set[str]) -> Iterator[str]:
    from stoker.doctor.fix.plan import plan

    kinds = {_IN_SOURCE[name] for name in changes if name in _IN_SOURCE}
    planned = plan([str(path)], {"safe", "unsafe"}, lambda kind, code, file: kind in kinds).changes
    for change in planned:
        yield change.diff()
