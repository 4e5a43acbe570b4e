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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

import stoker
from stoker import files
from stoker.data.array_types import Array
from stoker.data.labels import ClassName
from stoker.data.layer_names import any_column_names
from stoker.doctor.report.page.data import make_portable
from stoker.recipes.budget import Budget
from stoker.recipes.data_checks import count_classes
from stoker.recipes.ejecting import Settings
from stoker.recipes.progress import Trained, say
from stoker.recipes.reading import describe_reading
from stoker.recipes.report import describe_choice, find_worst, list_doubts, report
from stoker.recipes.rows import Inputs, Rows, count_repeated, example_rows
from stoker.recipes.scores import (
    Contender,
    Result,
    Score,
    contest,
    importance,
    name_contender,
    name_loss,
    verdict,
)
from stoker.recipes.winner import NETWORK, Winner, WinnerChoice
from stoker.serve.export import child
from stoker.tf_internals.types import Dataset

if TYPE_CHECKING:
    from stoker.recipes.rival_training import Rival

RESULT = "result.json"
BUNDLE = "bundle"
REPORT = "report.html"
CHECKPOINTS = "checkpoints"
LATEST = "latest"
FINISHED = "finished"


class Run:
    """A run of a recipe: its directory, and its place in the store. Use it in a `with` statement.

    Args:
        directory: the directory of the run.
        settings: the settings of the program, a dataclass; they become the run's parameters.
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
        # The export comes at the end, so the process of its proof can get ready while the network learns.
        child.prepare()
        # Keep the garbage collector from searching all of TensorFlow, which takes a quarter of a second each time.
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
        """Return where the training of a network is saved, so that the same program resumes after a crash."""
        return stoker.Checkpoint(self.directory / CHECKPOINTS / name, every=every, keep=2)

    def conclude(
        self,
        tried: list[Trained],
        peers: Mapping[str, Array] | Sequence[Rival],
        train: Dataset,
        seen: Rows,
        test: Rows,
        *,
        validation: Rows | None = None,
        only: str | None = None,
        classes: list[ClassName] | None = None,
        balanced: bool = False,
        ids: Callable[[Inputs], Inputs] | None = None,
        raw: Dataset | None = None,
        budget: Budget | None = None,
        all_rows: bool = False,
    ) -> Result:
        """Choose the model that is best on the validation rows, compare it, export it, and write the report.

        Args:
            tried: the trained networks.
            peers: the other models; or only their predictions for the test rows, by name, if they cannot be exported.
            train: the dataset of `stoker.data` that the networks learned from.
            seen: training rows, in the same raw form as the test rows.
            test: rows that no model has seen.
            validation: the rows by which the model is chosen; without them, the network is exported.
            only: export this model ("network", "linear", "boosted trees"), whichever is best.
            classes: the names of the classes; None if numbers are predicted.
            balanced: whether all classes count the same.
            ids: turns the inputs of the test rows into what the networks take; None if they take them unchanged.
            raw: the dataset of raw inputs, if those of `train` are not raw.
            budget: the time left, and what was cut for lack of time; a run with cuts continues if it is started again.
            all_rows: train the chosen model again for the bundle, on all these rows, after its scores were measured.

        Returns:
            The result, as in `result.json`.

        Raises:
            StokerError: no model was trained.
        """
        budget = budget or Budget()
        stopped = next((one.stopped for one in tried if one.stopped), None)
        tried = [one for one in tried if one.curves]
        best = min(tried, key=lambda one: one.loss, default=None)
        count = len(classes or ())
        choice = WinnerChoice(
            None if best is None else best.model,
            peers,
            train,
            classes=count,
            balanced=balanced,
            ids=ids,
            raw=raw,
            learn_again=None if best is None else best.learn_again,
        )
        answers = choice.answers(test)
        winner = choice.choose(validation, only)
        exported = winner.name
        own = answers[exported] if exported == NETWORK else winner.predict(test.inputs)
        # The exported model comes first, as the others are compared with it.
        contenders = contest(
            test.labels,
            {exported: own, **{name: one for name, one in answers.items() if name != exported}},
            classes=count,
            balanced=balanced,
            seed=self.settings.seed,
        )
        final = winner
        if all_rows and validation is not None and stopped != "interrupted":
            final = _train_on_all(choice, winner, seen.join(validation).join(test), budget)
        result: Result = {
            "recipe": self.kind,
            "state": stopped or ("time" if budget.cuts else FINISHED),
            "cuts": budget.cuts,
            "settings": dataclasses.asdict(self.settings),
            "network": None if best is None else best.name,
            "exported": winner.shares,
            "chosen_by": {
                "metric": name_loss(bool(classes), balanced),
                "losses": dict(winner.losses),
            },
            "learned_from_all_rows": final is not winner,
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
        if self.kind == "table":
            # Programs ejected by an older version have no list of what was left out.
            left_out = getattr(self.settings, "left_out", ())
            result["reading"] = describe_reading(
                train.features,
                int(train.rows),
                self.settings.target,
                left_out,
                of="training rows",
                classes=[] if classes is None else count_classes(seen.labels, classes),
            )
        if isinstance(test.inputs, Mapping):
            result["importance"] = importance(
                winner.predict,
                test,
                classes=count,
                balanced=balanced,
                seed=self.settings.seed,
            )
        self._export(final, best, contenders[0], result, example_rows(train, seen))
        self._write(result, report(result, own, test, train.features, _choose_pictures(own, test)))
        show(result)
        return result

    def _export(
        self,
        winner: Winner,
        best: Trained | None,
        contender: Contender,
        result: Result,
        examples: Inputs,
    ) -> None:
        scores = {name: score.value for name, score in contender.scores.items()}
        stoker.export(
            winner.model,
            self.directory / BUNDLE,
            features=winner.features,
            examples=examples,
            evaluation={name: value for name, value in scores.items() if np.isfinite(value)},
            lineage={
                "recipe": self.kind,
                "data": self.data,
                "run": self._kept.id,
                **({} if best is None else {"network": best.name}),
                "model": contender.name,
                **self._labels_in(winner.features),
            },
            scores_once=True,
            overwrite=True,
        )
        self._kept.log(
            0 if best is None else len(best.curves), {f"test {name}": value for name, value in scores.items()}
        )
        if best is not None:
            self._kept.params(network=best.name)
        self._kept.params(exported=contender.name, verdict=result["verdict"])

    def _labels_in(self, train: Dataset) -> dict[str, object]:
        """Return where to find the labels of new rows and how to score them, for `stoker evaluate`."""
        names = ("target", "column", "balanced")
        found = {name: one for name in names if (one := getattr(self.settings, name, None))}
        reading = getattr(train.features, "label_reading", None)
        return found if reading is None else {**found, "target_reading": reading.to_json()}

    def _write(self, result: Result, page: str) -> None:
        """Write the files and the links in the store, and the result last."""
        files.write_atomically(self.directory / REPORT, page)
        if Path(self.data).exists():
            self._kept.uses(Path(self.data))
        self._kept.artifact(self.directory / BUNDLE, kind="bundle")
        self._kept.artifact(self.directory / REPORT, kind="page")
        text = json.dumps(make_portable(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        files.write_atomically(self.directory / RESULT, text)
        _link_latest(self.directory)


def _train_on_all(choice: WinnerChoice, winner: Winner, rows: Rows, budget: Budget) -> Winner:
    """Return the chosen model trained again on all rows; unchanged if there is no time, or after Ctrl-C."""
    if not budget.has_time_again():
        budget.cut("No time to train the model on all rows: the bundle holds the one that was scored.")
        return winner
    say(f"  training {name_contender(winner.name)} on all {len(rows):,} rows")
    try:
        return choice.train_winner(winner, rows)
    except KeyboardInterrupt:
        budget.cut(
            "Interrupted before the model had learned from all rows: the bundle holds the one that was scored."
        )
        return winner


def _choose_pictures(answers: Array, test: Rows) -> list[bytes] | None:
    """Return the images of the worst mistakes."""
    if isinstance(test.inputs, Mapping) or test.inputs.ndim != 4:
        return None
    import tensorflow as tf

    return [tf.io.encode_png(test.inputs[row]).numpy() for row in find_worst(answers, test.labels)]


def show(result: Result) -> None:
    """Print the result."""
    rows = result["contenders"]
    metrics = list(rows[0]["scores"])
    table = [["", *metrics]]
    table += [[row["name"], *(str(Score.of(row["scores"][metric])) for metric in metrics)] for row in rows]
    say("")
    for line in align(table):
        say(f"  {line}")
    say("")
    say(f"  {result['verdict'][0].upper()}{result['verdict'][1:]}.")
    say(f"  {describe_choice(result)}")
    for doubt in list_doubts(result):
        say(f"  {doubt}")
    say(f"  bundle: {result['bundle']}   report: {result['report']}")


def align(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose columns are as wide as their widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def read_finished(directory: Path) -> Result | None:
    """Return the result of a finished run; None if it is not finished."""
    try:
        result: Result = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if result["state"] == FINISHED and (directory / BUNDLE).is_dir() else None


def _clear(directory: Path) -> None:
    """Remove what a killed export has left behind."""
    for left in directory.glob(f".{BUNDLE}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _link_latest(directory: Path) -> None:
    """Make `runs/latest` a link to this run. If it is a file, leave it alone."""
    link = directory.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    beside = link.with_name(f".{LATEST}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(directory.name, target_is_directory=True)
    os.replace(beside, link)
