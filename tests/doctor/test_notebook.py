"""The magics, in a real Jupyter kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import HANGS_S

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("tensorflow")

PROGRAM = """
import sys
import tensorflow as tf
x = tf.zeros([2])
for _ in range(50):
    float(tf.reduce_sum(x))
print("trained with", sys.argv[1:])
"""

CELL = """%%stoker
w = tf.Variable(1.0)
step = tf.function(lambda: w.assign_add(1.0))
for _ in range(200):
    step()
    total = float(w)
print("done", total)"""

EAGER = """%%stoker --experiments 300s
tf.random.set_seed(3)
v = tf.Variable(tf.ones([8]))
for _ in range(60):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((v * tf.random.normal([8], seed=1)) ** 2)
    v.assign_sub(0.01 * tape.gradient(loss, v))"""
LATER = "(v * tf.random.normal([8], seed=1)).numpy().tobytes().hex()"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A notebook that was run from top to bottom."""
    directory = tmp_path_factory.mktemp("notebook")
    (directory / "train.py").write_text(PROGRAM, encoding="utf-8")
    sources = [
        "%load_ext stoker",
        "%stoker run train.py --epochs 3",
        "import tensorflow as tf",
        CELL,
        "total",
        "%stoker trian.py",
        "%stoker run missing.py",
        "%%stoker\n1 / 0",
        EAGER,
        LATER,
        EAGER.replace("300s", "off"),
        LATER,
        "%%stoker --fast\n1",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(
        notebook, timeout=HANGS_S, allow_errors=True, resources={"metadata": {"path": str(directory)}}
    )
    client.execute()
    assert list((directory / ".stoker" / "runs").glob("*.json"))
    return notebook.cells


def text_of(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def shown(cell: Any) -> dict[str, str]:
    (data,) = [output["data"] for output in cell.outputs if output["output_type"] == "display_data"]
    return dict(data)


@pytest.mark.slow
def test_a_program_is_run_and_shown(cells: Any) -> None:
    assert "trained with ['--epochs', '3']" in text_of(cells[1])
    data = shown(cells[1])
    assert data["text/html"].startswith("<pre style=")
    assert "stoker  train.py --epochs 3" in data["text/plain"]


def test_a_cell_is_run_in_the_kernel_and_shown(cells: Any) -> None:
    assert "done 201.0" in text_of(cells[3])
    data = shown(cells[3])
    assert "200 steps" in data["text/plain"].replace("\xa0", " ")
    assert "<span" in data["text/html"]
    # Whatever the notebook's colours are: its own text on its own background.
    assert "background-color" not in data["text/html"]
    assert "  cell 4:6" in data["text/plain"].replace("\xa0", " "), data["text/plain"]
    assert "ipykernel" not in data["text/plain"]
    assert cells[4].outputs[0]["data"]["text/plain"] == "201.0"


def test_mistakes_are_one_line(cells: Any) -> None:
    assert text_of(cells[5]).startswith("stoker: write `%stoker run train.py args...`")
    assert "no such file: missing.py" in text_of(cells[6])
    assert "it takes only `--experiments 60s`, or `off`" in text_of(cells[12])


def test_an_error_in_the_cell_is_shown_and_so_is_the_report(cells: Any) -> None:
    assert "exit code 1" in shown(cells[7])["text/plain"].replace("\xa0", " ")
    assert "ZeroDivisionError" in str(cells[7].outputs)


def test_repairs_of_a_cell_are_timed_and_the_next_cell_notices_nothing(cells: Any) -> None:
    assert "interrupting the kernel skips the rest" in text_of(cells[8])
    assert ", measured" in shown(cells[8])["text/plain"].replace("\xa0", " ")
    assert "skips the rest" not in text_of(cells[10])
    assert ", modelled" in shown(cells[10])["text/plain"].replace("\xa0", " ")
    assert cells[9].outputs[0]["data"]["text/plain"] == cells[11].outputs[0]["data"]["text/plain"]


def test_elsewhere_the_report_is_text() -> None:
    from stoker.doctor.notebook import NotebookReport
    from tests.samples import sample_record

    plain = repr(NotebookReport(sample_record(), Path("run.json")))
    assert "\x1b" not in plain
    assert "stoker  " in plain
    assert plain.rstrip().endswith("record: run.json")
