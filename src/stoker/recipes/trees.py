"""Turn boosted trees of scikit-learn into a Keras model with the same answers, from TensorFlow's ops and Keras' layers.

A tree is evaluated without walking down it. All splits of all trees are decided at once. A product with a matrix then
counts, for each leaf, the decisions that lead elsewhere. The row reaches the leaf for which there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from stoker.data.array_types import Array, Floats
from stoker.tf_internals.types import Tensor

# A HistGradientBoostingClassifier or -Regressor, after `fit`.
Boosted: TypeAlias = Any
# With more trees than this, the products would take more memory than a server should need.
_MOST_TREES = 3_000


@dataclass(frozen=True)
class _Split:
    """A decision: whether a row goes to the left."""

    column: int
    threshold: float
    missing_left: bool
    categories: frozenset[int] | None


@dataclass(frozen=True)
class TreeColumn:
    """A column that the trees learned from.

    Attributes:
        name: the name of the column.
        size: how many ids a category has; 0 for numbers.
        seen: the ids that the training rows have, in order: scikit-learn numbers the categories by their place here.
    """

    name: str
    size: int
    seen: tuple[int, ...] = ()


def can_convert(trees: Boosted) -> bool:
    """Return whether there are few enough trees, and at least one of them has a split."""
    found = [tree for stage in trees._predictors for tree in stage]
    return len(found) <= _MOST_TREES and any(len(tree.nodes) > 1 for tree in found)


def boosted_margins(trees: Boosted, columns: list[TreeColumn], inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the sums of the trees for each row, before softmax, as Keras layers over the columns' inputs.

    Args:
        trees: the trees, after `fit` on these columns.
        columns: the columns, in the order in which the trees were given them.
        inputs: a Keras input for each column.

    Returns:
        A tensor [rows, 1], or [rows, classes] for three classes or more.
    """
    # scikit-learn puts categories first.
    order = sorted(columns, key=lambda one: not one.size)
    layout = _Layout(trees, order)
    decisions = layout.decide(inputs)
    trees_count, splits, leaves = layout.paths.shape
    decisions = ops.reshape(ops.take(decisions, layout.places, axis=1), (-1, trees_count, splits))
    off_path = keras.layers.EinsumDense("bts,tsl->btl", (trees_count, leaves), bias_axes="tl", name="paths")
    reached = ops.cast(ops.greater(off_path(decisions), -0.5), "float32")
    values = keras.layers.EinsumDense(
        "btl,tlk->bk", layout.values.shape[-1:], bias_axes="k", dtype="float64", name="leaves"
    )
    margins = values(ops.cast(reached, "float64"))
    off_path.set_weights([layout.paths, layout.offsets])
    values.set_weights([layout.values, layout.baseline])
    off_path.trainable = values.trainable = False
    return margins


class _Layout:
    """The splits and leaves of all trees as arrays."""

    def __init__(self, trees: Boosted, columns: list[TreeColumn]) -> None:
        self._columns = columns
        flat = [(tree, k) for stage in trees._predictors for k, tree in enumerate(stage)]
        outputs = len(trees._predictors[0])
        self._splits: list[_Split] = []
        self.baseline = np.asarray(trees._baseline_prediction, float).reshape(-1)
        widest = max(int((~tree.nodes["is_leaf"].astype(bool)).sum()) for tree, _ in flat) or 1
        leaves = max(int(tree.nodes["is_leaf"].sum()) for tree, _ in flat)
        self.paths: Floats = np.zeros((len(flat), widest, leaves), np.float32)
        # Leaves that a tree does not have are never reached.
        self.offsets: Floats = np.full((len(flat), leaves), -1.0, np.float32)
        self.values: Floats = np.zeros((len(flat), leaves, outputs))
        self._chosen: list[list[int]] = []
        for number, (tree, k) in enumerate(flat):
            self._add_tree(number, tree, k)
        self._group(widest)

    def _add_tree(self, number: int, tree: Any, output: int) -> None:
        chosen: list[int] = []
        leaf = 0
        waiting: list[tuple[int, list[tuple[int, bool]]]] = [(0, [])]
        while waiting:
            at, path = waiting.pop()
            node = tree.nodes[at]
            if node["is_leaf"]:
                for split, left in path:
                    self.paths[number, split, leaf] = 1.0 if left else -1.0
                self.offsets[number, leaf] = -sum(left for _, left in path)
                self.values[number, leaf, output] = node["value"]
                leaf += 1
                continue
            split = len(chosen)
            chosen.append(len(self._splits))
            self._splits.append(self._split(tree, node))
            waiting += [
                (int(node["left"]), [*path, (split, True)]),
                (int(node["right"]), [*path, (split, False)]),
            ]
        self._chosen.append(chosen)

    def _split(self, tree: Any, node: Any) -> _Split:
        categories = None
        if node["is_categorical"]:
            bits = tree.raw_left_cat_bitsets[node["bitset_idx"]]
            categories = frozenset(
                one for one in range(256) if bits[one // 32] >> np.uint32(one % 32) & np.uint32(1)
            )
        return _Split(
            int(node["feature_idx"]),
            float(node["num_threshold"]),
            bool(node["missing_go_to_left"]),
            categories,
        )

    def _group(self, widest: int) -> None:
        """Put the splits on numbers first, then those on each category; `places` leads back to the trees' order."""
        order = sorted(
            range(len(self._splits)),
            key=lambda one: (self._splits[one].categories is not None, self._splits[one].column),
        )
        place = {split: at for at, split in enumerate(order)}
        self._ordered = [self._splits[one] for one in order]
        # A tree with fewer splits repeats the first one, which no leaf of it reads in these places.
        self.places = [place[one] for chosen in self._chosen for one in chosen + [0] * (widest - len(chosen))]

    def decide(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return all decisions of a row: 1 for left, 0 for right."""
        parts = []
        numbers = [one for one in self._ordered if one.categories is None]
        if numbers:
            parts.append(self._decide_numbers(numbers, inputs))
        for at, column in enumerate(self._columns):
            own = [one for one in self._ordered if one.categories is not None and one.column == at]
            if own:
                parts.append(self._decide_category(column, own, inputs[column.name]))
        return parts[0] if len(parts) == 1 else keras.layers.Concatenate(name="decisions")(parts)

    def _decide_numbers(self, splits: list[_Split], inputs: Mapping[str, Tensor]) -> Tensor:
        used = sorted({one.column for one in splits})
        columns = [ops.cast(inputs[self._columns[at].name], "float64") for at in used]
        values = ops.stack(columns, axis=1)
        picked = ops.take(values, [used.index(one.column) for one in splits], axis=1)
        first = ops.cast(ops.zeros_like(values[:, 0]), "int32")
        thresholds = keras.layers.Embedding(
            1, len(splits), dtype="float64", trainable=False, name="thresholds"
        )
        missing = keras.layers.Embedding(1, len(splits), trainable=False, name="missing")
        left = ops.less_equal(picked, thresholds(first))
        absent = ops.logical_and(ops.isnan(picked), ops.greater(missing(first), 0.5))
        thresholds.set_weights([np.array([[one.threshold for one in splits]])])
        missing.set_weights([np.array([[one.missing_left for one in splits]], np.float32)])
        return ops.cast(ops.logical_or(left, absent), "float32")

    def _decide_category(self, column: TreeColumn, splits: list[_Split], ids: Tensor) -> Tensor:
        """Look up the decisions for each id in a table; an id that no training row has counts as missing."""
        table: Array = np.tile(np.array([one.missing_left for one in splits], np.float32), (column.size, 1))
        for place, one in enumerate(column.seen):
            table[one] = [place in (split.categories or ()) for split in splits]
        lookup = keras.layers.Embedding(*table.shape, trainable=False)
        decided = lookup(ids)
        lookup.set_weights([table])
        return decided
