"""A random `Case` trained with Keras' `fit` and with Stoker's, and what differs."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np

import stoker
from tests.train.made_models import EveryBatch, arguments, arrays, build
from tests.train.random_models import Case

# How far the losses may be apart, relatively, where the step is rounded in another way: a sign that differs in the last
# bit of a gradient is a whole step of some optimizers.
OTHER_STEPS = 1e-2
# And what the same weights give.
SAME_WEIGHTS = {"float32": 1e-5, "float64": 1e-5}
LOW_PRECISION = 2e-2
# Of several outputs each has a mean loss of its own, weighted by the length of batches where that is known beforehand.
ROWS_PREDICTED = 3
EVALUATED = ("val_", "first_loss", "second_loss")


@dataclass(eq=False)
class Difference(AssertionError):
    """Something that Stoker gave otherwise than Keras."""

    what: str
    keras: Any
    stoker: Any

    def __str__(self) -> str:
        return f"{self.what}: Keras {self.keras!r}, Stoker {self.stoker!r}"


class KerasRefuses(Exception):
    """The case is none: Keras itself raises."""


def compare(case: Case, plan: str | None = "unfused, none") -> str:
    """How far Stoker gives what Keras gives: "same", "rounded", or "Keras" if two runs of Keras differ.

    Args:
        case: what to train.
        plan: Stoker's plan; None: its default, whose bits are compared wherever it says that nothing is fused.

    Raises:
        Difference: Stoker gives something else.
        KerasRefuses: Keras raises.
    """
    try:
        expected = outcome(case, None)
    except Exception as error:
        raise KerasRefuses(f"{type(error).__name__}: {error}") from error
    try:
        found = outcome(case, plan or "default")
    except Exception as error:
        raise Difference("an error", "none", f"{type(error).__name__}: {str(error)[:600]}") from error
    rounded = bool(found.pop("fused"))
    expected.pop("fused")
    difference = first_difference(expected, found, lambda _: 0.0)
    if difference is None:
        return "same"
    if rounded or case.steps_per_execution > 1:
        # Where Keras runs several steps in one execution, its step is a loop's body: swish, for one, rounds otherwise.
        difference = first_difference(
            expected, found, lambda name: OTHER_STEPS if "history" in name else None
        )
    else:
        difference = first_difference(expected, found, lambda name: _tolerance(case, name))
    if difference is None:
        return "rounded"
    again = outcome(case, None)
    again.pop("fused")
    if first_difference(expected, again, lambda _: 0.0) is not None:
        return "Keras"
    raise difference


def _tolerance(case: Case, name: str) -> float | None:
    """Of the same weights. Keras' batches have a known length if all have one, and Stoker's evaluations never have.

    Keras' `predict` is traced for the length of its first batch, and only the next length makes it one of any.
    """
    close = SAME_WEIGHTS.get(case.policy, LOW_PRECISION)
    if name.startswith("metric") and case.asked == "evaluate" and case.rows % case.batch_size == 0:
        return None
    if name.startswith("metric") and case.validation != "none" and case.rows_held_out % case.batch_size == 0:
        return None
    if name.startswith("evaluate") and case.rows % case.batch_size == 0:
        return close
    if name.startswith("predict"):
        return close
    if any(part in name for part in EVALUATED) and case.rows_held_out % case.batch_size == 0:
        return close
    return 0.0


def outcome(case: Case, plan: str | None) -> dict[str, Any]:
    """All that a training leaves; Keras' without a plan."""
    keras.backend.clear_session()
    call, callbacks = arguments(case)
    x, y, weights = arrays(case)
    tested = {"sample_weight": weights} if case.weights == "sample" else {}
    tested |= {"batch_size": case.batch_size, "verbose": 0, "return_dict": True}
    planned: dict[str, Any] = {} if plan == "default" else {"plan": plan}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model = build(case)
        if plan is None:
            history: Any = model.fit(**call)
            evaluate, predict = model.evaluate, model.predict
        else:
            history = stoker.fit(model, **call, **planned)
            evaluate, predict = partial(stoker.evaluate, model), partial(stoker.predict, model)
        scores = evaluate(x, y, **tested) if case.asked == "evaluate" else {}
        predictions = predict(x, batch_size=ROWS_PREDICTED, verbose=0) if case.asked == "predict" else {}
    found: dict[str, Any] = {"history": history.history, "epochs": history.epoch}
    found |= {f"weight {number}": one for number, one in enumerate(model.weights)}
    found |= {f"optimizer {number} {one.name}": one for number, one in enumerate(model.optimizer.variables)}
    found |= {f"metric {number}": one for number, one in enumerate(model.metrics_variables)}
    found |= {"evaluate": scores, "predict": predictions}
    found["batches"] = [each.seen for each in callbacks if isinstance(each, EveryBatch)]
    read = {name: keras.tree.map_structure(_value, value) for name, value in found.items()}
    return {**read, "fused": plan is not None and history.plan.fused}


def _value(value: Any) -> Any:
    return np.asarray(keras.ops.convert_to_numpy(value)) if hasattr(value, "shape") else np.asarray(value)


def first_difference(
    expected: Mapping[str, Any], found: Mapping[str, Any], tolerance: Callable[[str], float | None]
) -> Difference | None:
    """The first, by how much it may be, by name; None: not to be compared."""
    for name, value in expected.items():
        if tolerance(name) is None:
            continue
        mine, theirs = keras.tree.flatten_with_path(value), keras.tree.flatten_with_path(found[name])
        if [path for path, _ in mine] != [path for path, _ in theirs]:
            return Difference(name, [path for path, _ in mine], [path for path, _ in theirs])
        for (path, one), (_, other) in zip(mine, theirs, strict=True):
            if not _is_same(one, other, tolerance(f"{name} {path}") or 0.0):
                return Difference(f"{name} {path}", one, other)
    return None


def _is_same(one: Any, other: Any, tolerance: float) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = (np.asarray(value, "float64") for value in (one, other))
    if tolerance:
        return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
    return np.array_equal(one, other, equal_nan=True)


def compare_export(case: Case) -> None:
    """Export the trained model: a new process has to give the answers of `predict` before there is a bundle.

    Raises:
        Difference: it does not.
    """
    model = build(case)
    call, _ = arguments(case)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stoker.fit(model, **call)
        try:
            stoker.export(model, Path(directory) / "bundle")
        except stoker.errors.StokerError as error:
            raise Difference("export", "a model", str(error)) from error
