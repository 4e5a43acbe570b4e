"""The directory of a recipe's run: checkpoints, the bundle, the report, the result.

runs/sales-price-1f3a9c/
    train.py        the program, as `--eject` writes it
    checkpoints/    where the same command resumes
    bundle/         what is served
    report.html
    result.json     written last: a run that has it is finished
runs/latest         a link to the newest
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np

import stoker
from stoker import files
from stoker.data.array_types import Array
from stoker.data.labels import ClassName
from stoker.data.layer_names import any_column_names
from stoker.doctor.report.page.data import portable
from stoker.errors import StokerError
from stoker.recipes.ejecting import Settings
from stoker.recipes.progress import Trained, say
from stoker.recipes.report import doubts, report, worst
from stoker.recipes.rows import Inputs, Rows, count_repeated
from stoker.recipes.scores import Contender, Result, Score, contest, importance, verdict
from stoker.serve.export import child
from stoker.tf_internals.types import Dataset, Model

RESULT = "result.json"
BUNDLE = "bundle"
REPORT = "report.html"
CHECKPOINTS = "checkpoints"
LATEST = "latest"
FINISHED = "finished"


class Run:
    """A run of a recipe: its directory, and its place in the store. Use it in a `with` statement.

    Args:
        directory: of the run.
        settings: of the program, a dataclass; they become the run's parameters.
        kind: "table", "text" or "image".
        data: the path of the training data.
    """

    def __init__(self, directory: str | os.PathLike[str], settings: Settings, kind: str, data: str) -> None:
        self.directory = Path(directory)
        self.settings, self.kind, self.data = settings, kind, data
        self._kept = stoker.track(
            self.directory.name, params=dataclasses.asdict(settings), kind=f"{kind} recipe"
        )
        self._quiet = any_column_names()

    def __enter__(self) -> Run:
        self._kept.__enter__()
        self._quiet.__enter__()
        self.directory.mkdir(parents=True, exist_ok=True)
        _clear(self.directory)
        # The export comes at the end: its proof can get ready while the network learns.
        child.prepare()
        # Keep the garbage collector from walking all of TensorFlow, which takes a quarter of a second each time.
        gc.freeze()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.unfreeze()
        child.dismiss_prepared()
        self._quiet.__exit__(kind, error, trace)
        self._kept.__exit__(kind, error, trace)

    def checkpoint(self, name: str, every: str | int) -> stoker.Checkpoint:
        """Where the training of a network is saved, so that the same program resumes after a crash."""
        return stoker.Checkpoint(self.directory / CHECKPOINTS / name, every=every, keep=2)

    def conclude(
        self,
        tried: list[Trained],
        peers: Mapping[str, Array],
        train: Dataset,
        seen: Rows,
        test: Rows,
        *,
        classes: list[ClassName] | None = None,
        balanced: bool = False,
        ids: Callable[[Inputs], Inputs] | None = None,
    ) -> Result:
        """Choose the best network, compare it, export it, and write the report.

        Args:
            tried: the networks that were trained.
            peers: the baselines' predictions for the test rows, by name.
            train: the dataset of `stoker.data` that the networks learned from.
            seen: training rows, as raw as the test rows.
            test: rows that no network has seen.
            classes: the names of the classes; None if numbers are predicted.
            balanced: all classes count the same.
            ids: makes what the model takes from the inputs of the test rows; None if it takes them as they are.

        Returns:
            The result, as in `result.json`.

        Raises:
            StokerError: nothing was trained.
        """
        stopped = next((one.stopped for one in tried if one.stopped), None)
        tried = [one for one in tried if one.curves]
        if not tried:
            raise StokerError(
                "training stopped before the end of its first epoch: there is nothing to keep yet"
            )
        best = min(tried, key=lambda one: one.loss)
        given = test.inputs if ids is None else ids(test.inputs)
        own = _predict(best.model, given, classes)
        contenders = contest(
            test.labels,
            {"network": own, **peers},
            classes=len(classes or ()),
            balanced=balanced,
            seed=self.settings.seed,
        )
        result = {
            "recipe": self.kind,
            "state": stopped or FINISHED,
            "settings": dataclasses.asdict(self.settings),
            "network": best.name,
            "networks": {
                one.name: {"loss": one.loss, "epochs": len(one.curves), "curves": one.curves} for one in tried
            },
            "rows": {"train": int(train.rows), "test": len(test)},
            "repeated": count_repeated(test, seen),
            "classes": None if classes is None else [str(one) for one in classes],
            "untested": [str(one) for number, one in enumerate(classes or ()) if number not in test.labels],
            "contenders": [dataclasses.asdict(one) for one in contenders],
            "verdict": verdict(contenders),
            "bundle": str(self.directory / BUNDLE),
            "report": str(self.directory / REPORT),
        }
        if isinstance(test.inputs, Mapping):
            result["importance"] = importance(
                lambda inputs: _predict(best.model, inputs, classes),
                test,
                classes=len(classes or ()),
                balanced=balanced,
                seed=self.settings.seed,
            )
        self._export(best, train, contenders[0], result)
        self._write(result, report(result, own, test, train.features, _pictures(own, test)))
        show(result)
        return result

    def _export(self, best: Trained, train: Dataset, network: Contender, result: Result) -> None:
        scores = {name: score.value for name, score in network.scores.items()}
        stoker.export(
            best.model,
            self.directory / BUNDLE,
            features=train,
            evaluation={name: value for name, value in scores.items() if np.isfinite(value)},
            lineage={"recipe": self.kind, "data": self.data, "run": self._kept.id, "network": best.name},
            overwrite=True,
        )
        self._kept.log(len(best.curves), {f"test {name}": value for name, value in scores.items()})
        self._kept.params(network=best.name, verdict=result["verdict"])

    def _write(self, result: Result, page: str) -> None:
        """Write the files, the links in the store, and the result last."""
        files.write_atomically(self.directory / REPORT, page)
        if Path(self.data).exists():
            self._kept.uses(Path(self.data))
        self._kept.artifact(self.directory / BUNDLE, kind="bundle")
        self._kept.artifact(self.directory / REPORT, kind="page")
        text = json.dumps(portable(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        files.write_atomically(self.directory / RESULT, text)
        _link_latest(self.directory)


def _predict(model: Model, inputs: Inputs, classes: list[ClassName] | None) -> Array:
    """Probabilities of the classes, or a number for each row."""
    answers: Array = stoker.predict(model, inputs, batch_size=1024, verbose=0)
    return answers if classes else answers.reshape(-1)


def _pictures(answers: Array, test: Rows) -> list[bytes] | None:
    """The images of the worst mistakes."""
    if isinstance(test.inputs, Mapping) or test.inputs.ndim != 4:
        return None
    import tensorflow as tf

    return [tf.io.encode_png(test.inputs[row]).numpy() for row in worst(answers, test.labels)]


def show(result: Result) -> None:
    """Print the result."""
    rows = result["contenders"]
    metrics = list(rows[0]["scores"])
    say("")
    say(f"  {'':<18}" + "".join(f"{metric:<28}" for metric in metrics).rstrip())
    for row in rows:
        shown = "".join(f"{Score.of(row['scores'][metric])!s:<28}" for metric in metrics)
        say(f"  {row['name']:<18}{shown.rstrip()}")
    say("")
    say(f"  {result['verdict'][0].upper()}{result['verdict'][1:]}.")
    for doubt in doubts(result):
        say(f"  {doubt}")
    say(f"  bundle: {result['bundle']}   report: {result['report']}")


def read_finished(directory: Path) -> Result | None:
    """The result of a finished run; None if it is not finished."""
    try:
        result: Result = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if result["state"] == FINISHED and (directory / BUNDLE).is_dir() else None


def _clear(directory: Path) -> None:
    """Remove what a killed export has left."""
    for left in directory.glob(f".{BUNDLE}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _link_latest(directory: Path) -> None:
    """Make `runs/latest` a link to this run; a file of that name is left alone."""
    link = directory.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    beside = link.with_name(f".{LATEST}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(directory.name, target_is_directory=True)
    os.replace(beside, link)
