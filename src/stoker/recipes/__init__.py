"""Recipes: data in, a trained, compared and exported model out, for a table, texts or images.

    stoker.recipes.table("sales.csv", target="price")
    stoker.recipes.text("reviews/")
    stoker.recipes.image("photos/")

A recipe inspects the data, fills in the settings of a program (`programs/`), and runs it. The program uses only public
names: the readers of `stoker.data`, Keras' layers, `stoker.fit`, the store, `stoker.export`, and the names below.
`eject` writes the same program to a file of your own.

Importing this package imports neither TensorFlow nor scikit-learn: names are resolved when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.lazy import import_when_used

if TYPE_CHECKING:
    from stoker.recipes.baselines import image_baselines, table_baselines, text_baselines
    from stoker.recipes.budget import Budget
    from stoker.recipes.directory import Run
    from stoker.recipes.ejecting import eject
    from stoker.recipes.frozen import asked_once
    from stoker.recipes.images import image
    from stoker.recipes.pixels import image_rivals
    from stoker.recipes.precisions import precision
    from stoker.recipes.progress import Progress, Trained
    from stoker.recipes.rivals import table_rivals
    from stoker.recipes.rows import Rows, balanced_weights, rows_of, weighted
    from stoker.recipes.tables import table
    from stoker.recipes.texts import text
    from stoker.recipes.tfidf import text_rivals

_HOMES = {
    "Budget": "stoker.recipes.budget",
    "text_rivals": "stoker.recipes.tfidf",
    "image_rivals": "stoker.recipes.pixels",
    "Progress": "stoker.recipes.progress",
    "Rows": "stoker.recipes.rows",
    "Run": "stoker.recipes.directory",
    "Trained": "stoker.recipes.progress",
    "asked_once": "stoker.recipes.frozen",
    "balanced_weights": "stoker.recipes.rows",
    "eject": "stoker.recipes.ejecting",
    "image": "stoker.recipes.images",
    "image_baselines": "stoker.recipes.baselines",
    "precision": "stoker.recipes.precisions",
    "rows_of": "stoker.recipes.rows",
    "table": "stoker.recipes.tables",
    "table_baselines": "stoker.recipes.baselines",
    "table_rivals": "stoker.recipes.rivals",
    "text": "stoker.recipes.texts",
    "text_baselines": "stoker.recipes.baselines",
    "weighted": "stoker.recipes.rows",
}

__all__ = [
    "Budget",
    "Progress",
    "Rows",
    "Run",
    "Trained",
    "asked_once",
    "balanced_weights",
    "eject",
    "image",
    "image_baselines",
    "image_rivals",
    "precision",
    "rows_of",
    "table",
    "table_baselines",
    "table_rivals",
    "text",
    "text_baselines",
    "text_rivals",
    "weighted",
]

# A recipe needs its whole extra, whichever package is the first to be missing.
__getattr__ = import_when_used(__name__, _HOMES, {"pyarrow": "sklearn"})


def __dir__() -> list[str]:
    return sorted(__all__)
