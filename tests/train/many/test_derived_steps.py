"""Members that are not traced: their steps follow from those of two others, with the bits of their own fit."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.train.many import tracing
from stoker.train.many.derived_steps import open_numbers
from stoker.train.many.tracing import describe_trace

pytestmark = pytest.mark.tensorflow
_RANDOM = np.random.default_rng(0)
X = _RANDOM.standard_normal((96, 6)).astype("float32")
Y = np.eye(3, dtype="float32")[_RANDOM.integers(0, 3, 96)]


def make(
    seed: int, dropout: float = 0.2, other: float = 0.3, smoothing: float = 0.1, decay: float = 0.01
) -> keras.Model:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, "relu", kernel_regularizer=keras.regularizers.L2(decay * 2)),
            keras.layers.Dropout(dropout, seed=seed),
            keras.layers.Dense(8, "relu"),
            keras.layers.GaussianDropout(other, seed=seed + 1),
            keras.layers.Dense(3, "softmax"),
        ]
    )
    model.compile(
        keras.optimizers.AdamW(1e-2, weight_decay=decay),
        keras.losses.CategoricalCrossentropy(label_smoothing=smoothing),
    )
    return model


def _count_traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    traced: list[int] = []
    real = tracing.MemberTraces._trace

    def trace(self: Any, member: Any, kind: str, *rest: Any) -> Any:
        if kind == "train_step":
            traced.append(member.number)
        return real(self, member, kind, *rest)

    monkeypatch.setattr(tracing.MemberTraces, "_trace", trace)
    return traced


def _compare_with_own_fits(configs: list[dict[str, Any]]) -> None:
    how: dict[str, Any] = {"epochs": 2, "batch_size": 32, "validation_data": (X[:32], Y[:32]), "verbose": 0}
    keras.utils.set_random_seed(9)
    together = stoker.fit_many(make, configs, X, Y, **how)
    for member in together:
        keras.utils.set_random_seed(member.config["seed"])
        alone = make(**member.config)
        keras.utils.set_random_seed(9)
        stoker.fit(alone, X, Y, **how)
        for one, other in zip(member.model.get_weights(), alone.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_members_with_other_numbers_are_derived_from_two_and_have_the_bits_of_their_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traced = _count_traces(monkeypatch)
    _compare_with_own_fits(
        [
            {
                "seed": n,
                "dropout": 0.1 + 0.13 * n,
                "other": 0.45 - 0.07 * n,
                "smoothing": 0.03 + 0.02 * n,
                "decay": 0.001 * (n + 1),
            }
            for n in range(4)
        ]
    )
    assert traced == [0, 1]


@pytest.mark.slow
def test_a_member_that_two_others_do_not_show_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = _count_traces(monkeypatch)
    _compare_with_own_fits(
        [
            {"seed": 0, "dropout": 0.1, "decay": 0.1},
            {"seed": 1, "dropout": 0.2, "decay": 0.2},
            # It is not known which of the two numbers a constant comes from.
            {"seed": 2, "dropout": 0.3, "decay": 0.4},
            # Nor what becomes of a number that the two have in common.
            {"seed": 3, "dropout": 0.3, "decay": 0.3, "smoothing": 0.2},
            {"seed": 4, "dropout": 0.4, "decay": 0.4},
        ]
    )
    assert traced == [0, 1, 2, 3]


def test_numbers_that_switch_something_off_stay_in_the_description() -> None:
    rest, numbers = open_numbers({"rate": 0.5, "units": 3, "off": 0.0, "parts": [1.0, -0.5, 0.25]})
    assert rest == {"rate": "~", "units": 3, "off": 0.0, "parts": [1.0, -0.5, "~"]}
    assert numbers == (0.5, 0.25)
    some, none = (describe_trace(make(0, dropout=rate)) for rate in (0.4, 0.0))
    assert some is not None
    assert none is not None
    assert some.family != none.family
