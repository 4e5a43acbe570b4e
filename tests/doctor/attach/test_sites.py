"""Who is the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import stoker
from stoker.doctor.attach import sites
from stoker.doctor.attach.sites import (
    FRAMEWORK,
    INTERNAL,
    KERAS_LOOP,
    LIBRARY,
    USER,
    Sites,
    definition,
)

PACKAGES = sysconfig.get_path("purelib")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/train.py", USER),
        ("train.py", USER),
        ("<stdin>", USER),
        ("<ipython-input-1-0a1b2c>", USER),
        ("<frozen importlib._bootstrap>", LIBRARY),
        (json.__file__, LIBRARY),
        (f"{PACKAGES}/numpy/core.py", LIBRARY),
        (f"{PACKAGES}/tqdm/std.py", LIBRARY),
        (f"{PACKAGES}/tensorflow/python/framework/ops.py", LIBRARY),
        (f"{PACKAGES}/tensorflow/python/ops/math_grad.py", FRAMEWORK),
        (f"{PACKAGES}/tensorflow/python/data/ops/map_op.py", INTERNAL),
        (f"{PACKAGES}/keras/src/backend/tensorflow/trainer.py", KERAS_LOOP),
        (f"{PACKAGES}/keras/src/callbacks/model_checkpoint.py", INTERNAL),
        ("/tmp/__autograph_generated_fileabc.py", LIBRARY),
        (sites.__file__, LIBRARY),
    ],
)
def test_kind_of_file(path: str, kind: int) -> None:
    assert Sites().kind_of(path) == kind


def test_a_program_in_site_packages_is_the_users() -> None:
    root = os.path.join(PACKAGES, "trainer_package")
    path = os.path.join(root, "train.py")
    assert Sites().kind_of(path) == LIBRARY
    assert Sites(user_root=root).kind_of(path) == USER


def call_through_library(callback: object) -> object:
    """Have the standard library call back."""
    return json.loads("[1]", object_hook=None, parse_int=callback)  # type: ignore[arg-type]


def test_the_callers_line_is_found_through_a_library() -> None:
    found: list[tuple[sites.SiteKey | None, int]] = []
    own = Sites()

    def look(_: str) -> None:
        found.append(own.caller())

    call_through_library(look)
    (key, farthest) = found[0]
    assert key is not None
    assert (Path(key[0]).name, key[2], farthest) == ("test_sites.py", "look", LIBRARY)


def test_definition_looks_through_wrappers() -> None:
    import functools

    def step() -> None:
        """A step."""

    @functools.wraps(step)
    def wrapper() -> None:
        step()

    found = definition(functools.partial(wrapper))
    assert found is not None
    assert found[1:] == (step.__code__.co_firstlineno, "step")
    assert definition(3) is None


def test_stoker_behind_a_link_is_not_the_users(tmp_path: Path) -> None:
    """As in an environment whose directories are links: a file's name is not where it lies."""
    (tmp_path / "packages").symlink_to(Path(stoker.__file__).parents[1])
    code = (
        "import stoker.version, stoker.doctor.attach.sites as s, stoker.train as t\n"
        "print([s.Sites().kind_of(m.__file__) for m in (stoker.version, s, t)], s.__file__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "packages")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert str(tmp_path / "packages") in done.stdout
    assert done.stdout.startswith(str([LIBRARY, LIBRARY, KERAS_LOOP]))
