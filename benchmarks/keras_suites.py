"""Runs the tests of Keras and of packages built on it, as they are and through `stoker.fit`, and prints what passes.

    python benchmarks/keras_suites.py [--keras DIRECTORY] [--checkout PACKAGE=DIRECTORY ...] [SUITE ...]

Keras' tests are those of the installed Keras if its wheel has them, or those below `--keras`, a checkout of the same
version. The wheels of keras_hub, keras_rs, keras_tuner and scikeras have no tests: give a checkout of each. A suite
whose checkout is missing is left out. Nothing of these packages is kept here; what they import has to be installed
(keras_hub: `regex`, `rich`, `kagglehub`, `tensorflow-text`; keras_tuner: `kt-legacy`, `requests`; scikeras:
`scikit-learn`; with `--no-deps` where it would bring another TensorFlow). The exit code is 1 if a test fails through
Stoker that passes without.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Suite:
    """Some tests of a package.

    Attributes:
        package: whose; for "keras" the paths are below its package, for others below the checkout.
        paths: files and directories of tests.
        keyword: pytest's `-k`, where only some of the tests train.
    """

    package: str
    paths: tuple[str, ...]
    keyword: str = ""


# Classifiers of texts, masked words, generation, LoRA, pairs of texts, classifiers of images, segmentation.
_HUB_MODELS = ("bert", "roberta", "gpt2", "gemma", "bart", "resnet", "segformer")
SUITES = {
    "trainer_test": Suite("keras", ("src/trainers/trainer_test.py",)),
    "callbacks": Suite("keras", ("src/callbacks",)),
    "models": Suite("keras", ("src/models",)),
    "layers": Suite("keras", ("src/layers",)),
    "saving": Suite("keras", ("src/saving",)),
    "optimizers": Suite("keras", ("src/optimizers",)),
    "data_adapters": Suite("keras", ("src/trainers/data_adapters",)),
    "backend": Suite("keras", ("src/backend",)),
    "metrics": Suite("keras", ("src/metrics",)),
    "keras_hub": Suite(
        "keras_hub",
        (
            "keras_hub/src/utils/pipeline_model_test.py",
            "keras_hub/src/models/task_test.py",
            *(f"keras_hub/src/models/{name}" for name in _HUB_MODELS),
        ),
        "(basics and not backbone and not tokenizer and not preprocessor) or test_task or lora or pipeline or TaskTest",
    ),
    "keras_rs": Suite(
        "keras_rs",
        ("keras_rs/src/losses", "keras_rs/src/layers/embedding/distributed_embedding_test.py"),
        "fit",
    ),
    "keras_tuner": Suite(
        "keras_tuner",
        ("keras_tuner/engine/tuner_test.py", "keras_tuner/engine/base_tuner_test.py", "keras_tuner/tuners"),
    ),
    "scikeras": Suite("scikeras", ("tests",)),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all without")
    parser.add_argument(
        "--keras", type=Path, help="the directory `keras` of a checkout; the installed one without"
    )
    parser.add_argument(
        *("--checkout", "-c"),
        action="append",
        default=[],
        metavar="PACKAGE=DIRECTORY",
        help="where the sources and tests of keras_hub, keras_rs, keras_tuner or scikeras are",
    )
    parser.add_argument("--through", default="fit", help="the verbs that go through Stoker (fit)")
    options = parser.parse_args()
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}")
    homes = _homes(parser, options)
    worse: list[str] = []
    print("| suite | tests | pass as they are | pass through Stoker |\n|---|---|---|---|")
    for name in options.suites or SUITES:
        suite = SUITES[name]
        if suite.package not in homes:
            if options.suites:
                parser.error(f"{name} has its tests in a checkout: give --checkout {suite.package}=DIRECTORY")
            print(f"not run: {name}, give --checkout {suite.package}=DIRECTORY", file=sys.stderr)
            continue
        paths = [homes[suite.package] / path for path in suite.paths]
        missing = [path for path in paths if not path.exists()]
        if missing:
            parser.error(f"{missing[0]} does not exist: this {suite.package} has no tests; give a checkout")
        plain = _results(paths, "", suite, homes)
        through = _results(paths, options.through, suite, homes)
        worse += [test for test, passed in plain.items() if passed and not through.get(test, False)]
        print(f"| {name} | {len(plain)} | {sum(plain.values())} | {sum(through.values())} |", flush=True)
    for test in worse:
        print(f"fails only through Stoker: {test}")
    return 1 if worse else 0


def _homes(parser: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, Path]:
    """By package, where its suites are."""
    homes = {"keras": options.keras or _installed()}
    for given in options.checkout:
        package, equals, place = given.partition("=")
        if not equals or package not in {suite.package for suite in SUITES.values()}:
            parser.error(f"--checkout {given}: give PACKAGE=DIRECTORY, such as keras_hub=../keras-hub")
        if not (Path(place) / package).is_dir():
            parser.error(f"--checkout {given}: {place} has no directory {package}")
        homes[package] = Path(place).absolute()
    return homes


def _installed() -> Path:
    found = importlib.util.find_spec("keras")
    if found is None or found.origin is None:
        raise SystemExit("Keras is not installed")
    return Path(found.origin).parent


def _environment(suite: Suite, homes: Mapping[str, Path]) -> dict[str, str]:
    # The sources that are tested are those of the checkout.
    own = [] if suite.package == "keras" else [str(homes[suite.package])]
    return {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *own]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def _results(paths: list[Path], through: str, suite: Suite, homes: Mapping[str, Path]) -> dict[str, bool]:
    """By test: whether it passed. Those that were skipped are left out."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        # Several tests write beside themselves: in a directory that goes away.
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "through_stoker"),
                *("--through", through, "-c", os.devnull, "--rootdir", place, "--junitxml", str(report)),
                *("-p", "no:cacheprovider", "-W", "ignore", "--continue-on-collection-errors"),
                *(("-k", suite.keyword) if suite.keyword else ()),
                *map(str, paths),
            ],
            cwd=place,
            env=_environment(suite, homes),
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            raise SystemExit(
                f"the tests of {suite.package} could not be run:\n{(done.stdout + done.stderr)[-1000:]}"
            )
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    # A file whose imports fail (jax, or a module that only a checkout has) is no test that fails.
    unread = [case for case in cases if _message(case) == "collection failure"]
    for case in unread if not through else ():
        print(f"not run: {case.get('name')}", file=sys.stderr)
    if len(unread) == len(cases):
        why = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E  ")]
        raise SystemExit(f"the tests of {suite.package} could not be run: {(why or ['there are none'])[0]}")
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
