"""Small files to learn from: each has something in it that can be learned, and something that gets in the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf


def sales(path: Path, rows: int = 240) -> Path:
    """Prices that follow from size and town; an id, a constant, missing sizes."""
    random = np.random.default_rng(1)
    size = random.uniform(20, 200, rows)
    town = random.choice(["Rome", "Oslo", "Lima"], rows)
    price = 1000 * size + 40_000 * (town == "Oslo") + random.normal(0, 2000, rows)
    lines = ["id,size,town,rooms,country,sold,price"]
    for row in range(rows):
        area = "" if row % 17 == 5 else f"{size[row]:.1f}"
        sold = "yes" if price[row] > 110_000 else "no"
        lines.append(f"{row + 1},{area},{town[row]},{row % 5},here,{sold},{price[row]:.2f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def odd_names(path: Path, rows: int = 120) -> list[str]:
    """Columns called as no variable could be, and as layers are; the targets `y` and `sold`. Returns all names."""
    random = np.random.default_rng(4)
    odd = ["é", "名前", " spaced ", "_x", "%", "", "x", "X", "a/b", "amount due", "1st"]
    layers = [
        "prediction",
        "probabilities",
        "waves",
        "mixed",
        "dense_1",
        "dropout",
        "cast",
        "sin",
        "functional",
    ]
    values = random.normal(size=(rows, len(odd + layers)))
    lines = [",".join([*odd, *layers, "y", "sold"])]
    for row in values:
        sold = "yes" if row[0] + random.normal() > 0 else "no"
        lines.append(",".join([*(f"{one:.3f}" for one in [*row, row.sum()]), sold]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines[0].split(",")


def reviews(folder: Path, each: int = 60) -> Path:
    """Texts of two classes that differ in a few words."""
    random = np.random.default_rng(2)
    plain = ["the", "film", "was", "it", "and", "then", "there", "a", "story", "in"]
    for name, words in (("bad", ["dull", "poor", "weak"]), ("good", ["great", "fine", "lovely"])):
        (folder / name).mkdir(parents=True)
        for number in range(each):
            text = [*random.choice(plain, 6 + number % 20), *random.choice(words, 2)]
            random.shuffle(text)
            (folder / name / f"{number:03}.txt").write_text(" ".join(text), encoding="utf-8")
    return folder


def shapes(folder: Path, each: int = 40, size: int = 12) -> Path:
    """Grey images of two classes: lines across, lines down."""
    random = np.random.default_rng(3)
    for name in ("across", "down"):
        (folder / name).mkdir(parents=True)
        for number in range(each):
            pixels = random.integers(0, 60, (size, size, 1)).astype(np.uint8)
            place = random.integers(1, size - 1)
            if name == "across":
                pixels[place] = 220
            else:
                pixels[:, place] = 220
            (folder / name / f"{number:03}.png").write_bytes(tf.io.encode_png(pixels).numpy())
    return folder
