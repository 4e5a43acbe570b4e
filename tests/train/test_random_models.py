"""Random models are trained to Keras' bits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support import ALL_CASES
from tests.train.comparing import KerasRefuses, compare
from tests.train.random_models import Case, cases

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@settings(
    max_examples=60 if ALL_CASES else 10,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(case=cases(most_layers=2))
def test_stoker_gives_what_keras_gives(case: Case) -> None:
    """Every third one with the plan that Stoker makes, whose bits count as well, unless it fuses."""
    try:
        compare(case, plan=None if case.seed == 2 else "unfused, none")
    except KerasRefuses:
        # Nothing to compare with; soak_models.py counts them.
        return


# What differed once, made small by hand.
FOUND = {
    "the only batch is shorter than asked for, and its length was built into the step": Case(
        layers=(("RepeatVector", (("n", 3),)), ("RMSNormalization", ()), ("RMSNormalization", ())),
        target="classes",
        loss="sparse_categorical_crossentropy",
        optimizer=("AdamW", ()),
        rows=4,
        batch_size=8,
        epochs=2,
        seed=3,
    ),
    "and into the weight of each output's mean loss": Case(
        functional=True,
        second_output=True,
        target="classes",
        loss="sparse_categorical_crossentropy",
        rows=7,
        batch_size=32,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_differed_once_is_the_same(name: str) -> None:
    assert compare(FOUND[name]) == "same"


def test_predictions_are_rounded_as_if_batches_could_have_any_length() -> None:
    """Keras builds the length of the first batch that it predicts into its trace; the rest has Keras' bits."""
    lstm = {"units": 4, "return_sequences": True, "dropout": 0.3, "recurrent_dropout": 0.2}
    case = Case(
        layers=(("RepeatVector", (("n", 3),)), ("LSTM", tuple(lstm.items()))),
        functional=True,
        target="one-hot",
        loss="categorical_crossentropy",
        optimizer=("Adadelta", (("global_clipnorm", 0.5), ("weight_decay", 0.01))),
        rows=4,
        batch_size=4,
        asked="predict",
    )
    assert compare(case) == "rounded"
