"""What a model goes by: how much worse it gets when one column's values are given to other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker.recipes.rows import Rows
from stoker.recipes.scores import contest

_MOST_ROWS, _MOST_COLUMNS = 2_000, 60


def importance(
    predict: Callable[[Any], Any], rows: Rows, *, classes: int, balanced: bool, seed: int
) -> list[tuple[str, float]]:
    """The loss in the first metric by column, the largest first; where there are many, of some rows and columns."""
    few = Rows({name: column[:_MOST_ROWS] for name, column in rows.inputs.items()}, rows.labels[:_MOST_ROWS])
    random = np.random.default_rng(seed)
    order = random.permutation(len(few))
    names = list(few.inputs)[:_MOST_COLUMNS]
    # All columns in one call: a call of its own for each would be mostly calls.
    blocks = [few, *(few.shuffled(name, order) for name in names)]
    inputs = {name: np.concatenate([block.inputs[name] for block in blocks]) for name in few.inputs}
    answers = np.split(predict(inputs), len(blocks))
    measured = contest(
        few.labels,
        dict(zip(["", *names], answers, strict=True)),
        classes=classes,
        balanced=balanced,
        seed=seed,
        resamples=0,
    )
    found = [(one.name, one.behind.value) for one in measured[1:]]
    return sorted(found, key=lambda pair: -pair[1])
