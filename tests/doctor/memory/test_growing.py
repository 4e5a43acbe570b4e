"""A leak is named with its line within 50 steps, wherever the program keeps its list; a full buffer is no leak."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from stoker.doctor.attach.sites import Sites  # noqa: E402
from stoker.doctor.memory.additions import find_addition  # noqa: E402
from stoker.doctor.memory.growing import GrowthWatch  # noqa: E402

# `look` is called at every tenth step, as the heartbeat's thread would from time to time.
PROGRAM = """
from collections import deque

class Log:
    def __init__(self):
        self.outputs = {"all": []}

log = Log()
everywhere = {}

def in_a_local(steps, make, look):
    kept = []
    for step in range(steps):
        kept.append((step, make()))
        look(step)

def in_an_attribute(steps, make, look):
    for step in range(steps):
        log.outputs["all"].append(make())
        look(step)

def in_a_global_dict(steps, make, look):
    for step in range(steps):
        everywhere[step] = {"out": make()}
        look(step)

def in_a_closure(steps, make, look):
    seen = []
    def keep():
        seen.extend([make()])
    for step in range(steps):
        keep()
        look(step)

def in_a_full_buffer(steps, make, look):
    recent = deque(maxlen=12)
    for step in range(steps):
        recent.append(make())
        look(step)

def in_a_list_made_before(steps, make, look):
    batches = [make() for _ in range(steps)]
    for step, batch in enumerate(batches):
        look(step)

def in_a_program_that_asks_for_its_locals(steps, make, look):
    options = locals()
    before = dict(options)
    for step in range(steps):
        look(step)
    assert options == before
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Any]:
    file = tmp_path / "leaking.py"
    file.write_text(PROGRAM)
    module = types.ModuleType("leaking")
    module.__file__ = str(file)
    sys.modules["leaking"] = module
    exec(compile(PROGRAM, str(file), "exec"), vars(module))
    yield module
    del sys.modules["leaking"]


def _watch(program: Any, function: str, steps: int = 50) -> GrowthWatch:
    """Run a function of the program, which keeps 1 MiB a step, under a watch."""
    done = 0
    watch = GrowthWatch(Sites(str(Path(program.__file__).parent)), lambda: done)

    def look(step: int) -> None:
        nonlocal done
        done = step + 1
        if done % 10 == 0:
            watch.look()

    getattr(program, function)(steps, lambda: tf.random.uniform([256, 1024]), look)
    return watch


LEAKS = [
    ("in_a_local", "kept.append"),
    ("in_an_attribute", 'log.outputs["all"].append'),
    ("in_a_global_dict", "everywhere[step] ="),
    ("in_a_closure", "seen.extend"),
]


@pytest.mark.parametrize(("function", "text"), LEAKS)
def test_a_leak_of_a_mebibyte_a_step_is_named_within_fifty_steps(
    program: Any, function: str, text: str
) -> None:
    (found,) = _watch(program, function).growing.values()
    assert text in PROGRAM.splitlines()[found.site[1] - 1]
    assert found.site[0] == program.__file__
    assert found.bytes_per_step == 1 << 20
    assert (found.length, found.bytes) == (50, 50 << 20)


@pytest.mark.parametrize(("function", "text"), LEAKS)
def test_a_leak_is_found_beside_thousands_of_other_objects(program: Any, function: str, text: str) -> None:
    crowd = types.ModuleType("a_crowd")
    crowd.__file__ = str(Path(program.__file__).parent / "a_crowd.py")
    exec("class Thing:\n    pass\nthings = {f'thing_{i}': Thing() for i in range(9000)}", vars(crowd))
    vars(crowd).update(vars(crowd).pop("things"))
    others = dict(sys.modules)
    sys.modules.clear()
    # The first to be looked into, if modules were looked into as they come.
    sys.modules.update({"a_crowd": crowd} | others)
    try:
        (found,) = _watch(program, function).growing.values()
    finally:
        del sys.modules["a_crowd"]
    assert text in PROGRAM.splitlines()[found.site[1] - 1]


@pytest.mark.parametrize(
    "function", ["in_a_full_buffer", "in_a_list_made_before", "in_a_program_that_asks_for_its_locals"]
)
def test_what_does_not_grow_is_no_leak(program: Any, function: str) -> None:
    assert _watch(program, function).growing == {}


def test_the_frames_of_the_program_keep_nothing_for_our_looking(program: Any) -> None:
    import weakref

    died: list[int] = []

    def make() -> Any:
        made = tf.ones([4])
        weakref.finalize(made, died.append, 1)
        return made

    exec(
        compile(
            "def drop(make, look):\n    thing = make()\n    look()\n    thing = None\n    return 1\n",
            program.__file__,
            "exec",
        ),
        vars(program),
    )
    watch = GrowthWatch(Sites(str(Path(program.__file__).parent)), lambda: 10)
    assert program.drop(make, watch.look) == 1
    assert died == [1]


def test_the_line_that_adds_is_the_one_in_a_loop_of_that_function(tmp_path: Path) -> None:
    file = tmp_path / "lines.py"
    file.write_text(
        "def other():\n    kept = []\n    kept.append(0)\n\n"
        "def train():\n    kept = []\n    kept.append(1)\n    for i in range(3):\n        kept += [i]\n"
    )
    assert find_addition(str(file), "train", "kept") == (str(file), 9, "train")
    assert find_addition(str(file), "train", "missing") is None
