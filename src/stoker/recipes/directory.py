"""The directory of a recipe's run, and what is put there: checkpoints, the bundle, the report, the result.

runs/sales-price-1f3a9c/
    train.py        the program, as `--eject` writes it
    checkpoints/    from which the same command goes on
    bundle/         what is served
    report.html
    result.json     written last: who has it is done
runs/latest         a link to the newest
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import stoker
from stoker import files
from stoker.data.layer_names import any_column_names
from stoker.doctor.report.page.data import portable
from stoker.errors import StokerError
from stoker.recipes.importance import importance
from stoker.recipes.progress import Trained, say
from stoker.recipes.report import doubts, report, worst
from stoker.recipes.rows import Rows, repeated
from stoker.recipes.scores import Contender, Score, contest, verdict
from stoker.serve.export import child

RESULT = "result.json"
BUNDLE = "bundle"
REPORT = "report.html"
CHECKPOINTS = "checkpoints"
LATEST = "latest"
FINISHED = "finished"


class Run:
    """A run of a recipe: its directory, and its place in the store. Use it in a `with` statement.

    Args:
        directory: where it is kept.
        settings: of the program, a dataclass; they become the run's parameters.
        kind: "table", "text" or "image".
        data: the files it learns from.
    """

    def __init__(self, directory: str | os.PathLike[str], settings: Any, kind: str, data: str) -> None:
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
        # An export comes at the end: what proves it can get ready while the network learns.
        child.prepare()
        # Until then Python need not look for cycles in all of TensorFlow, which takes a quarter of a second each time.
        gc.freeze()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gc.unfreeze()
        child.dismiss_prepared()
        self._quiet.__exit__(kind, error, trace)
        self._kept.__exit__(kind, error, trace)

    def checkpoint(self, name: str, every: str | int) -> Any:
        """Where a network's training is saved, so that the same program goes on after a crash."""
        return stoker.Checkpoint(self.directory / CHECKPOINTS / name, every=every, keep=2)

    def conclude(
        self,
        tried: list[Trained],
        peers: Mapping[str, Any],
        train: Any,
        seen: Rows,
        test: Rows,
        *,
        classes: list[Any] | None = None,
        balanced: bool = False,
        ids: Any = None,
    ) -> dict[str, Any]:
        """Choose the best network, compare it, export it, and write down all of it.

        Args:
            tried: the networks that were trained.
            peers: the baselines' predictions for the test rows, by name.
            train: the dataset of `stoker.data` the networks learned from: it knows what raw rows are.
            seen: training rows, as raw as the test rows.
            test: rows that no network has seen.
            classes: what the classes are called; None if numbers are predicted.
            balanced: all classes count alike.
            ids: what the model takes, made of the inputs of the test rows; as they are, if None.

        Returns:
            The result, as it is written to `result.json`.

        Raises:
            StokerError: nothing was trained.
        """
        stopped = next((one.stopped for one in tried if one.stopped), None)
        tried = [one for one in tried if one.curves]
        if not tried:
            raise StokerError("training stopped before its first epoch ended: there is nothing to keep yet")
        best = min(tried, key=lambda one: one.loss)
        given = test.inputs if ids is None else ids(test.inputs)
        own = _predicted(best.model, given, classes)
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
            "repeated": repeated(test, seen),
            "classes": None if classes is None else [str(one) for one in classes],
            "untested": [str(one) for number, one in enumerate(classes or ()) if number not in test.labels],
            "contenders": [one.to_json() for one in contenders],
            "verdict": verdict(contenders),
            "bundle": str(self.directory / BUNDLE),
            "report": str(self.directory / REPORT),
        }
        if isinstance(test.inputs, Mapping):
            result["importance"] = importance(
                lambda inputs: _predicted(best.model, inputs, classes),
                test,
                classes=len(classes or ()),
                balanced=balanced,
                seed=self.settings.seed,
            )
        self._export(best, train, contenders[0], result)
        self._write(result, report(result, own, test, train.features, _pictures(own, test)))
        show(result)
        return result

    def _export(self, best: Trained, train: Any, network: Contender, result: dict[str, Any]) -> None:
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

    def _write(self, result: dict[str, Any], page: str) -> None:
        """The files, the links in the store, and last of all the result."""
        files.write_atomically(self.directory / REPORT, page)
        if Path(self.data).exists():
            self._kept.uses(Path(self.data))
        self._kept.artifact(self.directory / BUNDLE, kind="bundle")
        self._kept.artifact(self.directory / REPORT, kind="page")
        text = json.dumps(portable(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        files.write_atomically(self.directory / RESULT, text)
        _point(self.directory)


def _predicted(model: Any, inputs: Any, classes: list[Any] | None) -> Any:
    """Probabilities of the classes, or a number a row."""
    answers = stoker.predict(model, inputs, batch_size=1024, verbose=0)
    return answers if classes else answers.reshape(-1)


def _pictures(answers: Any, test: Rows) -> list[bytes] | None:
    """The images of the worst mistakes."""
    if isinstance(test.inputs, Mapping) or test.inputs.ndim != 4:
        return None
    import tensorflow as tf

    return [tf.io.encode_png(test.inputs[row]).numpy() for row in worst(answers, test.labels)]


def show(result: dict[str, Any]) -> None:
    """The result, for people."""
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


def finished(directory: Path) -> dict[str, Any] | None:
    """The result of a run that has been trained to its end."""
    try:
        result: dict[str, Any] = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if result["state"] == FINISHED and (directory / BUNDLE).is_dir() else None


def _clear(directory: Path) -> None:
    """What an export that was killed has left."""
    for left in directory.glob(f".{BUNDLE}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _point(directory: Path) -> None:
    """`runs/latest` leads to this run; a file of that name is left alone."""
    link = directory.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    beside = link.with_name(f".{LATEST}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(directory.name, target_is_directory=True)
    os.replace(beside, link)
