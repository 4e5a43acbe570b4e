"""Stoker's own loops are never taken for the user's program, wherever their files lie."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker import clock
from stoker.doctor.attach.announced import LOOP_PACKAGES
from stoker.doctor.attach.sites import KERAS_LOOP, LIBRARY, OWN_ROOT, Sites, shown_path
from stoker.doctor.diagnosis.findings import findings
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.tallies import CheckpointsPart, CopiesPart, ReadsPart
from stoker.doctor.probes.session import Session

tf = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")

VERBS = ("fit", "evaluate", "predict", "Trainer")
MODULES = sorted(Path(OWN_ROOT).rglob("*.py"))


def announces_a_loop(path: Path) -> bool:
    """Whether `announced.region(announced.LOOP, ...)`, or `region(LOOP, ...)`, stands in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("region"):
            named = ast.unparse(node.args[0])
            if named == "LOOP" or named.endswith(".LOOP"):
                return True
    return False


def test_modules_that_announce_a_loop_are_loops() -> None:
    found = [path for path in MODULES if announces_a_loop(path)]
    assert found, "nothing announces a loop any more: this test looks for the wrong thing"
    assert [path for path in found if Sites().kind_of(str(path)) != KERAS_LOOP] == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_public_verbs_are_defined_in_loops(verb: str) -> None:
    file = inspect.getsourcefile(getattr(stoker, verb))
    assert file is not None
    assert Sites().kind_of(file) == KERAS_LOOP


def test_every_package_of_loops_is_there_and_nothing_else_is_one() -> None:
    assert [name for name in LOOP_PACKAGES if not Path(OWN_ROOT, name, "__init__.py").is_file()] == []
    for path in MODULES:
        inside = path.relative_to(OWN_ROOT).parts[0] in LOOP_PACKAGES
        assert Sites().kind_of(str(path)) == (KERAS_LOOP if inside else LIBRARY)


X = np.random.RandomState(0).rand(320, 8).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def mean_squared(model: Any, batch: Any, training: bool) -> Any:
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=training))


def compiled() -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    return model


def use(verb: str) -> None:
    """The verb with arrays and with a dataset, often enough for whatever it does itself to be noticed."""
    rows = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    model = compiled()
    trainer = stoker.Trainer(model, model.optimizer, mean_squared)
    for _ in range(5):
        if verb == "fit":
            stoker.fit(model, X, Y, 8, 2, verbose=0, validation_data=(X[:64], Y[:64]))
            stoker.fit(model, rows, epochs=2, verbose=0)
        elif verb == "evaluate":
            stoker.evaluate(model, X, Y, batch_size=8, verbose=0)
            stoker.evaluate(model, rows, verbose=0)
        elif verb == "predict":
            stoker.predict(model, X, batch_size=8, verbose=0)
            stoker.predict(model, rows.map(lambda x, _: x), verbose=0)
        else:
            trainer.fit(X, Y, batch_size=8, epochs=2, verbose=0)
            trainer.evaluate(X, Y)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(tmp_path)
    session = Session(clock.now_ns())
    session.attach_now()
    yield session
    session.detach()


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_run_leaves_nothing_of_ours_on_the_books(verb: str, session: Session) -> None:
    use(verb)
    measured = session.measurements()
    assert measured[Books].notes == []
    reads, copies = measured[ReadsPart].by_site, measured[CopiesPart].by_site
    sites = {*reads, *copies, *measured[CheckpointsPart].by_site, *measured[EagerPart].tapes}
    sites |= {*measured[KerasPart].predicts, *measured[KerasPart].fits}
    assert [site for site in sites if site[0].startswith(OWN_ROOT)] == []
    # What the verbs read and copy for themselves is not of the line that calls them.
    assert [site for site in (*reads, *copies) if site[2] == "use"] == []
    own = shown_path(OWN_ROOT).rstrip("/")
    assert [f for f in findings(measured) if f.file.startswith((OWN_ROOT, own))] == []
    assert [f.kind for f in findings(measured) if f.function == "use"] == []


def test_what_the_user_does_in_the_same_place_is_theirs(session: Session) -> None:
    """The test above would see it: a read on a line of `use` is on the books."""
    for _ in range(3):
        float(tf.constant(1.0) + 1.0)
    (site,) = session.measurements()[ReadsPart].by_site
    assert site[2] == "test_what_the_user_does_in_the_same_place_is_theirs"
