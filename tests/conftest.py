"""What all tests share: their marks, a quicker garbage collector, a small disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import durations, marking
from tests.support import ROOT

# The fixture `bucket`, for whoever reads or writes elsewhere.
pytest_plugins = ["tests.storage.buckets"]

# Of what a test trains, nothing is kept, unless the test is about that.
os.environ["STOKER_STORE"] = "off"
os.environ["STOKER_KEEP_COMPILATIONS"] = "0"

# Hundreds of programs are started: they load less of what Keras imports on the side.
_LEAN_START = str(ROOT / "tests" / "lean_start")
if _LEAN_START not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_LEAN_START, os.environ.get("PYTHONPATH")]))

# Files of long tests, each with programs of its own.
SHARES_NOTHING = {"tests/test_examples.py"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m fast`, do not even import the files that would load TensorFlow."""
    only_fast = config.option.markexpr == "fast" and collection_path.suffix == ".py"
    return True if only_fast and marking.file_needs_tensorflow(collection_path) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """A worker for each core that has 3 GB of memory beside it: most load TensorFlow and start programs that do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, memory // (3 << 30)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay together, for they share what they set up; long ones that share nothing do not.

    Files are handed out in the order of `pytest_collection_modifyitems`: the longest first, so that no process is left
    with a long one at the end.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return nodeid if file in SHARES_NOTHING else file

    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test `fast` or `tensorflow`, or leave it `slow`; with several processes, put long files first."""
    for item in items:
        marking.mark(item)
    if hasattr(config, "workerinput"):
        durations.sort(items)


@pytest.fixture(autouse=True)
def _fast_means_without_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """A fast test that loads TensorFlow is marked wrongly."""
    before = "tensorflow" in sys.modules
    yield
    if request.node.get_closest_marker("fast") and not before:
        assert "tensorflow" not in sys.modules, "this test loads TensorFlow: mark it pytest.mark.tensorflow"


@pytest.fixture(autouse=True)
def _leaves_the_checkout_alone() -> Iterator[None]:
    """Files belong into a test's own directory. (With `-n`, a test beside this one may be the one that made them.)"""
    before = set(os.listdir(ROOT))
    yield
    made = {name for name in set(os.listdir(ROOT)) - before if not name.startswith(".")}
    assert not made, f"written into the checkout: {', '.join(sorted(made))}"


@pytest.fixture(scope="session", autouse=True)
def _quick_garbage_collection() -> None:
    """What importing TensorFlow left is never garbage: looking through it again and again is half of many tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 2 MB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command")
    if mounted.returncode:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)
