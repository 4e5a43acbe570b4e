"""From findings to files: atomic, idempotent, encodings and notebooks kept."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from stoker.doctor.fix.plan import plan

CODE = """import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices(x).batch(32)  # größer
model.fit(ds)
"""
FIXED = CODE.replace(".batch(32)", ".batch(32).prefetch(tf.data.AUTOTUNE)")


def everything(kind: str, code: str, file: str) -> bool:
    return True


def test_writes_the_fixed_file_and_a_second_fix_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(CODE, encoding="utf-8")
    path.chmod(0o754)
    repairs = plan([str(path)], {"safe"}, everything)
    (change,), errors = repairs.changes, repairs.errors
    assert errors == []
    assert path.read_text(encoding="utf-8") == CODE
    change.write()
    assert path.read_text(encoding="utf-8") == FIXED
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert plan([str(path)], {"safe"}, everything).changes == []
    change.undo()
    assert path.read_text(encoding="utf-8") == CODE
    assert list(tmp_path.iterdir()) == [path]


def test_unsafe_fixes_need_asking(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import tensorflow as tf\nds = tf.data.TFRecordDataset(f).map(parse)\n", encoding="utf-8")
    assert plan([str(path)], {"safe"}, everything).changes == []
    (change,) = plan([str(path)], {"safe", "unsafe"}, everything).changes
    assert b"num_parallel_calls=tf.data.AUTOTUNE" in change.after


def test_encoding_and_line_ends_stay(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(("# -*- coding: latin-1 -*-\n" + CODE).replace("\n", "\r\n").encode("latin-1"))
    (change,) = plan([str(path)], {"safe"}, everything).changes
    assert change.after == ("# -*- coding: latin-1 -*-\n" + FIXED).replace("\n", "\r\n").encode("latin-1")


def test_notebook_cells_keep_their_magics(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    source = [line + "\n" for line in CODE.splitlines()[1:3]] + ["!ls\n", "model.fit(ds)"]
    cells = [
        {"cell_type": "markdown", "source": ["hi"]},
        {"cell_type": "code", "source": ["%load_ext x\n", "import tensorflow as tf"], "outputs": []},
        {"cell_type": "code", "source": source, "outputs": [1]},
    ]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}, indent=1) + "\n", encoding="utf-8")
    (change,) = plan([str(path)], {"safe"}, everything).changes
    new = json.loads(change.after)
    assert "".join(new["cells"][2]["source"]) == "".join(source).replace(
        ".batch(32)", ".batch(32).prefetch(tf.data.AUTOTUNE)"
    )
    assert new["cells"][:2] == cells[:2]
    assert new["cells"][2]["outputs"] == [1]


def test_a_fix_can_be_in_another_file_than_its_cause(tmp_path: Path) -> None:
    data, train = tmp_path / "data.py", tmp_path / "train.py"
    data.write_text(
        "import tensorflow as tf\n\ndef load():\n    return tf.data.Dataset.range(9).batch(3)\n",
        encoding="utf-8",
    )
    train.write_text(
        "import tensorflow as tf\nfrom data import load\n\nmodel.fit(load())\n", encoding="utf-8"
    )
    (change,) = plan([str(data), str(train)], {"safe"}, everything).changes
    assert change.path == str(data)
    assert b".batch(3).prefetch(tf.data.AUTOTUNE)" in change.after
