"""Runs Keras' own test suites as they are and through `stoker.fit`, and prints what passes, as a table.

    python benchmarks/keras_suites.py [--keras DIRECTORY] [SUITE ...]

The tests are those of the installed Keras if its wheel has them, or those below `--keras`, a checkout of the same
version. Nothing of Keras is kept here. The exit code is 1 if a test fails through Stoker that passes without.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SUITES = {
    "trainer_test": "trainers/trainer_test.py",
    "callbacks": "callbacks",
    "models": "models",
    "layers": "layers",
    "saving": "saving",
    "optimizers": "optimizers",
}
_ENVIRONMENT = {
    "KERAS_BACKEND": "tensorflow",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(Path(__file__).parent),
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all without")
    parser.add_argument(
        "--keras", type=Path, help="the directory `keras` of a checkout; the installed one without"
    )
    parser.add_argument("--through", default="fit", help="the verbs that go through Stoker (fit)")
    options = parser.parse_args()
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}")
    home = options.keras or _installed()
    worse: list[str] = []
    print("| suite | tests | pass as they are | pass through Stoker |\n|---|---|---|---|")
    for name in options.suites or SUITES:
        path = home / "src" / SUITES[name]
        if not path.exists():
            parser.error(
                f"{path} does not exist: this Keras has no tests; give --keras the one of a checkout"
            )
        plain, through = _results(path, ""), _results(path, options.through)
        fail = [test for test, passed in plain.items() if passed and not through.get(test, False)]
        worse += fail
        print(f"| {name} | {len(plain)} | {sum(plain.values())} | {sum(through.values())} |", flush=True)
    for test in worse:
        print(f"fails only through Stoker: {test}")
    return 1 if worse else 0


def _installed() -> Path:
    found = importlib.util.find_spec("keras")
    if found is None or found.origin is None:
        raise SystemExit("Keras is not installed")
    return Path(found.origin).parent


def _results(path: Path, through: str) -> dict[str, bool]:
    """By test: whether it passed. Those that were skipped are left out."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        # Several tests write beside themselves: in a directory that goes away.
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "through_stoker"),
                *("--through", through, "-c", os.devnull, "--rootdir", place, "--junitxml", str(report)),
                *("-p", "no:cacheprovider", "-W", "ignore", "--continue-on-collection-errors", str(path)),
            ],
            cwd=place,
            env={**os.environ, **_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            raise SystemExit(f"the tests in {path} could not be run:\n{done.stdout[-1000:]}")
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    # A file whose imports fail (jax, or a module that only a checkout has) is no test that fails.
    unread = [case for case in cases if _message(case) == "collection failure"]
    for case in unread if not through else ():
        print(f"not run: {case.get('name')}", file=sys.stderr)
    if len(unread) == len(cases):
        why = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E  ")]
        raise SystemExit(f"the tests in {path} could not be run: {(why or ['there are none'])[0]}")
    return {
        f"{case.get('classname')}.{case.get('name')}": not _has(case, "failure", "error")
        for case in cases
        if case not in unread and not _has(case, "skipped")
    }


def _message(case: ElementTree.Element) -> str | None:
    error = case.find("error")
    return error.get("message") if error is not None else None


def _has(case: ElementTree.Element, *tags: str) -> bool:
    return any(case.find(tag) is not None for tag in tags)


if __name__ == "__main__":
    raise SystemExit(main())
