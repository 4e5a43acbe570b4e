"""A large project: each file is read and each helper interpreted a bounded number of times."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stoker.doctor.check.checker import check_file
from stoker.doctor.check.source import functions, project
from stoker.doctor.check.source.files import load
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.project import Project
from stoker.doctor.check.source.values import Func

HELPER = """
import tensorflow as tf

def build(units):
    return tf.keras.Sequential([tf.keras.layers.Dense(units)])
"""


def write_project(directory: Path, importers: int, callers: int = 1) -> list[str]:
    (directory / "helper.py").write_text(HELPER, encoding="utf-8")
    calls = "".join(f"def test_{n}():\n    for x in dataset:\n        build(10)(x)\n" for n in range(callers))
    paths = [directory / f"user_{n}.py" for n in range(importers)]
    for path in paths:
        path.write_text(f"import tensorflow as tf\nfrom helper import build\n{calls}", encoding="utf-8")
    return [str(directory / "helper.py"), *map(str, paths)]


def test_a_file_that_many_others_import_is_read_once(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()

    def counting(path: str) -> SourceModule:
        counts[Path(path).name] += 1
        return load(path)

    shared = Project(counting)
    for path in write_project(tmp_path, importers=8):
        assert check_file(path, shared).error is None
    assert set(counts.values()) == {1}


def test_only_the_latest_files_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "_KEPT", 3)
    counts: Counter[str] = Counter()

    def counting(path: str) -> SourceModule:
        counts[Path(path).name] += 1
        return load(path)

    shared = Project(counting)
    paths = write_project(tmp_path, importers=8)
    for path in paths:
        check_file(path, shared)
    # The helper is used by each of them, so it stays; the first of the others was dropped.
    shared.load(paths[0])
    shared.load(paths[1])
    assert (counts["helper.py"], counts["user_0.py"]) == (1, 2)


def test_a_helper_that_many_functions_call_is_interpreted_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: Counter[str] = Counter()
    real = functions._run

    def counting(m: object, function: Func, *args: object) -> functions.CallSummary:
        runs[getattr(function.node, "name", "lambda")] += 1
        return real(m, function, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(functions, "_run", counting)
    made = []
    for callers in (1, 40):
        runs.clear()
        check_file(write_project(tmp_path, importers=1, callers=callers)[1], Project())
        made.append(runs["build"])
    assert made[0] == made[1] > 0
