"""Notebooks as Python: magics harmless, lines kept, cells put back in their own form."""

from __future__ import annotations

import ast
import json

import pytest

from stoker.doctor.check.source.module import SourceError
from stoker.doctor.check.source.notebook import python_lines, read_cells, replace_cells


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline\nx = 1",
        "!pip install tensorflow\nx = 1",
        "files = !ls\ny = %timeit 3",
        "%%bash\necho hello; if [ 1 ]",
        "%%time\nx = 1",
        "if True:\n    !ls\n    %cd x",
        "model?\n?model",
    ],
)
def test_magics_become_python(source: str) -> None:
    lines = python_lines(source)
    assert len(lines) == len(source.split("\n"))
    ast.parse("\n".join(lines))


def test_cells_are_found_and_replaced() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"]},
        {"cell_type": "code", "source": "c = 3"},
    ]
    text = json.dumps({"cells": cells})
    joined, found = read_cells("n.ipynb", text)
    assert joined == "a = 1\nb = 2\nc = 3\n"
    assert [(c.number, c.first, c.last) for c in found] == [(2, 1, 2), (3, 3, 3)]
    new = json.loads(replace_cells(text, {2: "a = 1\nb = 9", 3: "c = 4"}))
    assert new["cells"][1]["source"] == ["a = 1\n", "b = 9"]
    assert new["cells"][2]["source"] == "c = 4"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [1]}', "x = 1"])
def test_what_is_not_a_notebook_is_said_in_one_line(text: str) -> None:
    with pytest.raises(SourceError, match="is not a notebook") as caught:
        read_cells("n.ipynb", text)
    assert "\n" not in str(caught.value)
