"""What goes into the wheel: every file of the package that is not a module."""

from __future__ import annotations

import sys

from tests.support import ROOT, SRC

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_wheel_has_every_file_that_is_not_a_module() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["stoker"]
    packed = {path for pattern in patterns for path in SRC.glob(pattern)}
    data = {
        path
        for path in SRC.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not (path.parent / "__init__.py").exists()
    } | {path for path in SRC.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert {path.relative_to(SRC).as_posix() for path in data - packed} == set()
    assert all(any(SRC.glob(pattern)) for pattern in patterns)
