"""TensorFlow Serving's own tests of its server, run on `tensorflow_model_server` as Stoker provides it.

    make peers-serving SERVING=path/to/a/checkout/of/tensorflow/serving

The tests start a binary of that name from a tree that Bazel would build; here the tree is made of links, and the binary
is a line of shell that starts Stoker's command. Nothing of the tests is changed. They run in groups, because every
server they start stays until the group ends.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TEST = Path("tensorflow_serving/model_servers/tensorflow_model_server_test.py")
CLASS = "TensorflowModelServerTest"
GROUP = 5
# Divides the CPU into two devices, which TensorFlow allows only before anything else has run.
ALONE = "test_distrat_sequential_keras_saved_model_save"
# The package of the client has no such modules; they come from the checkout.
RUN = """
import runpy, sys
import tensorflow_serving
tensorflow_serving.__path__.append(sys.argv.pop(1))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
OUTCOME = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] \w+\.(\w+)", re.MULTILINE)


def make_tree(checkout: Path, tree: Path) -> None:
    """The directories as the tests look for them, with our command in the place of the binary."""
    serving = tree / "tf_serving" / "tensorflow_serving"
    (serving / "model_servers").mkdir(parents=True)
    (serving / "servables").symlink_to(checkout / "tensorflow_serving" / "servables")
    binary = serving / "model_servers" / "tensorflow_model_server"
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stoker.cli._model_server "$@"\n')
    binary.chmod(0o755)


def list_tests(file: Path) -> list[str]:
    """The names of the tests."""
    return re.findall(r"^  def (test\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)


def divide(names: list[str]) -> list[list[str]]:
    """The tests that run in one process each."""
    others = [name for name in names if name != ALONE]
    groups = [others[first : first + GROUP] for first in range(0, len(others), GROUP)]
    return groups + [[name] for name in names if name == ALONE]


def run_group(checkout: Path, tree: Path, names: list[str]) -> tuple[dict[str, str], str]:
    """The outcome of some tests, and what they printed."""
    with tempfile.TemporaryDirectory() as scratch:
        # Their Keras models are saved in the form of Keras 2.
        environment = {
            **os.environ, "TEST_SRCDIR": str(tree), "TEST_TMPDIR": scratch, "TF_USE_LEGACY_KERAS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        command = [sys.executable, "-c", RUN, str(checkout / "tensorflow_serving"), str(checkout / TEST)]
        command += [f"{CLASS}.{name}" for name in names]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
    text = done.stdout + done.stderr
    found = {name: outcome for outcome, name in OUTCOME.findall(text)}
    return {name: found.get(name, "FAILED") for name in names}, text


def main() -> int:
    """Run the tests and say which passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="of tensorflow/serving")
    parser.add_argument("names", nargs="*", help="some of the tests")
    parser.add_argument("--output", type=Path, help="a file for all that the tests print")
    args = parser.parse_args()
    file = args.checkout.resolve() / TEST
    if not file.is_file():
        print(f"there is no {file}: give a checkout of tensorflow/serving", file=sys.stderr)
        return 2
    names = args.names or list_tests(file)
    outcomes: dict[str, str] = {}
    printed = ""
    with tempfile.TemporaryDirectory() as tree:
        make_tree(args.checkout.resolve(), Path(tree))
        for group in divide(names):
            found, text = run_group(args.checkout.resolve(), Path(tree), group)
            outcomes |= found
            printed += text
            if args.output:
                args.output.write_text(printed, encoding="utf-8")
            for name in group:
                print(f"{found[name]:8} {name}", flush=True)
    passed = sum(outcome == "OK" for outcome in outcomes.values())
    print(f"{passed} of {len(outcomes)} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
