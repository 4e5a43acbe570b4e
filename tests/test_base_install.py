"""What `pip install stoker` brings, for a pre-commit hook, is enough to check programs and to keep their runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import stoker
from tests.support import HANGS_S, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# rich, what rich needs, and tomli on Python 3.10.
BASE = ("rich", "markdown_it", "mdurl", "pygments", "tomli")


@pytest.fixture(scope="module")
def base_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the base install only."""
    place = tmp_path_factory.mktemp("base")
    venv.create(place / "env", symlinks=True)
    python = place / "env" / "bin" / "python"
    (packages,) = (place / "env" / "lib").glob("python*/site-packages")
    installed = Path(sysconfig.get_path("purelib"))
    for name in BASE:
        if (installed / name).is_dir():
            (packages / name).symlink_to(installed / name)
    (packages / "stoker").symlink_to(Path(stoker.__file__).parent)
    return python


def run_base(python: Path, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STOKER"))
    }
    return subprocess.run(
        [str(python), *words],
        cwd=place,
        env={**environment, "HOME": str(place)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def test_the_base_install_brings_rich_only() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert [one.partition(">")[0] for one in needed] == ["rich", "tomli"]


@pytest.mark.parametrize("package", ["numpy", "tensorflow", "sqlalchemy", "alembic"])
def test_the_base_install_lacks(base_python: Path, tmp_path: Path, package: str) -> None:
    done = run_base(base_python, tmp_path, "-c", f"import {package}")
    assert "ModuleNotFoundError" in done.stderr


STALLING = """import tensorflow as tf

step = tf.function(lambda x: x + 1.0)
x = tf.constant(0.0)
for _ in range(9):
    x = step(x)
    print(x.numpy())
"""


def test_the_base_install_checks_fixes_and_explains(base_python: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STALLING)
    found = run_base(base_python, tmp_path, "-m", "stoker", "check", "train.py")
    assert found.returncode == 1
    assert "STK101" in found.stdout
    for words in (["fix", "train.py"], ["explain", "STK101"], ["--version"]):
        done = run_base(base_python, tmp_path, "-m", "stoker", *words)
        assert (done.returncode, done.stderr) == (0, ""), words


def test_the_base_install_keeps_a_run_and_its_record(base_python: Path, tmp_path: Path) -> None:
    """The store needs nothing that the base install lacks."""
    (tmp_path / "train.py").write_text("print('ran')\n")
    done = run_base(base_python, tmp_path, "-m", "stoker", "run", "train.py")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    (record,) = (tmp_path / ".stoker" / "runs").glob("*.json")
    report = run_base(base_python, tmp_path, "-m", "stoker", "report", str(record))
    assert report.returncode == 0, report.stderr
    listed = run_base(base_python, tmp_path, "-m", "stoker", "runs", "--json")
    assert [row["id"] for row in json.loads(listed.stdout)] == [record.stem], listed.stderr
    verified = run_base(base_python, tmp_path, "-m", "stoker", "runs", "verify")
    assert verified.returncode == 0, verified.stdout


def test_mlflows_database_names_its_extra(base_python: Path, tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").touch()
    done = run_base(base_python, tmp_path, "-m", "stoker", "runs", "import", "mlflow.db")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith("needs sqlalchemy: install it with pip install 'stoker[mlflow]'")


EVERYTHING = """
import json, stoker, stoker.data, stoker.recipes
from stoker.errors import StokerError

found = {}

def attempt(name, call):
    try:
        call()
    except StokerError as error:
        found[name] = str(error)

def guard():
    with stoker.guard():
        pass

for module in (stoker, stoker.data, stoker.recipes):
    for name in module.__all__:
        attempt(f"{module.__name__}.{name}", lambda: getattr(module, name))
attempt("stoker.guard()", guard)
print(json.dumps(found))
"""


def test_every_public_name_works_or_names_its_extra(base_python: Path, tmp_path: Path) -> None:
    done = run_base(base_python, tmp_path, "-c", EVERYTHING)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["stoker.fit"] == "stoker.fit needs tensorflow: install it with pip install 'stoker[cpu]'"
    assert {"stoker.Trainer", "stoker.Predictor", "stoker.recipes.table", "stoker.guard()"} <= set(found)
    for name, line in found.items():
        assert re.fullmatch(
            rf"{re.escape(name)} needs \w+: install it with pip install 'stoker\[\w+\]'", line
        ), line


@pytest.mark.parametrize(
    "words",
    [
        ("train", "table", "rows.csv", "--target", "b"),
        ("export", "model.keras", "out"),
        ("bundle", "out"),
        ("serve", "out"),
        ("package", "out", "-o", "image"),
        ("data", "rows.csv"),
        ("tune", "train.py:make"),
        ("ui",),
    ],
    ids=lambda words: words[0],
)
def test_every_verb_works_or_names_its_extra(
    base_python: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "train.py").write_text("def make():\n    pass\n")
    (tmp_path / "model.keras").touch()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "bundle.json").write_text("{}")
    done = run_base(base_python, tmp_path, "-m", "stoker", *words)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(
        rf"stoker: stoker {words[0]} needs \w+: install it with pip install 'stoker\[[\w,]+\]'", line
    )
