"""Many files together: calls across files, allow-comments, the cache, notebooks."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

import stoker.doctor.check.cache as cache_module
from stoker.doctor.check import checker
from stoker.doctor.check.cache import Cache
from stoker.doctor.check.checker import check_paths

STEP = """
import tensorflow as tf

def train_step(model, optimizer, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss
"""


def write(folder: Path, **files: str) -> list[str]:
    paths = []
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        paths.append(str(path))
    return paths


def kinds(paths: list[str], cache: Cache | None = None) -> list[tuple[str, int, str]]:
    found = check_paths(paths, cache=cache).problems
    return [(os.path.basename(p.file), p.line, p.kind) for p in found]


def test_a_helper_in_another_file_is_hot_when_the_loop_calls_it(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        helpers="""
        def log(loss):
            print(float(loss))
        """,
        train="""
        import tensorflow as tf
        from helpers import log

        @tf.function
        def step(x):
            return tf.reduce_sum(x)

        for x in dataset:
            log(step(x))
        """,
    )
    assert ("helpers.py", 3, "sync-in-loop") in kinds(paths)


def test_a_step_that_another_file_compiles_is_not_eager(tmp_path: Path) -> None:
    alone = write(tmp_path, steps=STEP)
    assert kinds(alone) == [("steps.py", 5, "eager-train-step")]
    paths = alone + write(
        tmp_path,
        train="""
        import tensorflow as tf
        import steps

        compiled = tf.function(steps.train_step)
        for x in dataset:
            compiled(model, optimizer, x)
        """,
    )
    assert kinds(paths) == []


def test_a_pipeline_from_another_file_is_judged_where_it_is_used(tmp_path: Path) -> None:
    data = """
    import tensorflow as tf

    def load():
        return tf.data.Dataset.list_files("*.png").batch(32)
    """
    used = """
    import tensorflow as tf
    from data import load

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(load(){tail})
    """
    bare = write(tmp_path, data=data, train=used.format(tail=""))
    assert ("data.py", 5, "missing-prefetch") in kinds(bare)
    tuned = write(tmp_path, data=data, train=used.format(tail=".prefetch(2)"))
    assert kinds(tuned) == []


def test_allow_comments_silence_and_unused_ones_are_reported(tmp_path: Path) -> None:
    (path,) = write(
        tmp_path,
        train="""
        import tensorflow as tf
        for x in dataset:
            loss = tf.reduce_sum(model(x))
            print(loss.numpy())  # stoker: allow[sync-in-loop]
            # stoker: allow[STK101]
            print(float(loss))
            y = 1  # stoker: allow[sync-in-loop]
            text = "# stoker: allow[sync-in-loop]"
        """,
    )
    assert kinds([path]) == [("train.py", 8, "unused-allow")]


def test_a_file_that_does_not_parse_is_one_line_and_the_others_are_checked(tmp_path: Path) -> None:
    paths = write(tmp_path, broken="def (:\n", good=STEP)
    checked = check_paths(paths)
    assert len(checked.errors) == 1
    assert checked.errors[0].startswith(paths[0] + ":1:")
    assert "\n" not in checked.errors[0]
    assert [p.kind for p in checked.problems] == ["eager-train-step"]


def test_parallel_and_serial_agree(tmp_path: Path) -> None:
    paths = write(tmp_path, **{f"m{i}": STEP + f"\nx{i} = 1\n" for i in range(40)})
    parallel = check_paths(paths, jobs=2)
    serial = check_paths(paths, jobs=1)
    assert parallel == serial
    assert len(serial.problems) == 40


def test_cache_recalls_unchanged_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(tmp_path, one=STEP, two="import tensorflow as tf\n")
    first = kinds(paths, Cache(tmp_path / "cache"))
    checked: list[str] = []
    real = checker.check_file

    def counting(path: str, *args: object) -> checker.FileResult:
        checked.append(os.path.basename(path))
        return real(path, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(checker, "check_file", counting)
    assert kinds(paths, Cache(tmp_path / "cache")) == first
    assert checked == []
    # Touched but the same: recognised by its content.
    os.utime(paths[0], (1, 1))
    assert kinds(paths, Cache(tmp_path / "cache")) == first
    assert checked == []
    Path(paths[0]).write_text("import tensorflow as tf\n", encoding="utf-8")
    assert kinds(paths, Cache(tmp_path / "cache")) == []
    assert checked == ["one.py"]


def test_cache_notices_a_changed_dependency_and_another_stoker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = "def log(loss):\n    {}\n"
    paths = write(
        tmp_path,
        train="""
        import tensorflow as tf
        from helpers import log
        for x in dataset:
            log(tf.reduce_sum(model(x)))
        """,
    )
    assert kinds(paths, Cache(tmp_path / "cache")) == []
    # The import could not be resolved before; now it can.
    paths += write(tmp_path, helpers=helper.format("print(loss)"))
    assert ("helpers.py", 2, "sync-in-loop") in kinds(paths, Cache(tmp_path / "cache"))
    write(tmp_path, helpers=helper.format("pass       "))
    assert kinds(paths, Cache(tmp_path / "cache")) == []
    monkeypatch.setattr(cache_module, "fingerprint", lambda: "another")
    assert Cache(tmp_path / "cache").recall([os.path.abspath(path) for path in paths]) == {}


def test_notebook_problems_are_in_their_cells(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import tensorflow as tf\n", "!ls\n"]},
        {
            "cell_type": "code",
            "source": "for x in ds:\n    y = tf.reduce_sum(model(x))\n    print(y.numpy())",
        },
    ]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (problem,) = check_paths([str(path)]).problems
    assert (problem.kind, problem.cell, problem.line) == ("sync-in-loop", 3, 3)


def test_every_argument_that_retraces_a_call_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import tensorflow as tf\n\n\n@tf.function\ndef step(x, length, count):\n    return x[:length] * count\n\n\n"
        "x = tf.zeros(60)\ncount = 0\nfor _ in range(99):\n    step(x, 20 + count % 40, count)\n    count += 1\n"
    )
    (problem,) = check_paths([str(path)]).problems
    assert problem.message == (
        "`20 + count % 40` and `count` are Python values that change: each new value traces the function again"
    )
    assert problem.fix is None, "wrapping one of the two would not stop the tracing"
