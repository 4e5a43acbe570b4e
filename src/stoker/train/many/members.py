"""The members of a `fit_many`: a config, the model made from it, its history; and which models cannot be members."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.eager import global_seed
from stoker.tf_internals.keras_training import strategy_of
from stoker.tf_internals.types import History, Model
from stoker.train.execution.feed import host_random_state, restore_host_random_state
from stoker.train.execution.model_kinds import check_compiled, check_model
from stoker.train.execution.own_methods import is_own, is_set_by_user

Config = Mapping[str, Any]


@dataclass(eq=False)
class Member:
    """One of the models that train together.

    Attributes:
        number: its place among the configs.
        config: the config from which its model was made.
        model: the trained model.
        history: the member's Keras `History`, as its own `stoker.fit` would return it.
        score: the value by which members are compared; None before the end.
    """

    number: int
    config: Config
    model: Model
    history: History = field(default=None, repr=False)
    score: float | None = None


def make_members(make_model: Callable[..., Model], configs: Sequence[Config]) -> list[Member]:
    """Make a model for each config, with the random state that its `seed` asks for.

    Raises:
        ArgumentError: a config is not a dict, or a model cannot be trained together with others.
    """
    if not callable(make_model):
        raise ArgumentError(
            f"make_model must be a function that returns a compiled model, not {type(make_model).__name__}"
        )
    if isinstance(configs, Mapping) or not isinstance(configs, Sequence) or not configs:
        raise ArgumentError(
            "configs must be a list of at least one dict, such as [{'rate': 1e-3}, {'rate': 1e-2}]"
        )
    with _same_random_state_after():
        return [_make(make_model, number, config) for number, config in enumerate(configs)]


def _make(make_model: Callable[..., Model], number: int, config: Config) -> Member:
    if not isinstance(config, Mapping):
        raise ArgumentError(f"configs[{number}] must be a dict of arguments for make_model, not {config!r}")
    given = dict(config)
    if "seed" in given:
        seed = given["seed"]
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise ArgumentError(
                f"configs[{number}]: seed={seed!r} must be a whole number from 0 to 2**32 - 1"
            )
        keras.utils.set_random_seed(seed)
        if not _takes(make_model, "seed"):
            del given["seed"]
    model = make_model(**given)
    _check(model, number)
    return Member(number, config, model)


def _takes(function: Callable[..., object], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


@contextmanager
def _same_random_state_after() -> Iterator[None]:
    """Restore the program's random state after the block, in which members' seeds may be set."""
    seed, host = global_seed(), host_random_state()
    changed = False
    try:
        yield
        changed = global_seed() != seed
    finally:
        if changed:
            restore_host_random_state(host)
            tf.random.set_seed(seed)


def _check(model: Model, number: int) -> None:
    """Refuse a model that a compiled loop of many members would not run as `stoker.fit` does."""
    try:
        check_model(model, "fit_many")
        check_compiled(model, "fit_many")
    except ArgumentError as error:
        raise type(error)(f"make_model, configs[{number}]: {error}") from None
    name = type(model).__name__
    if model.run_eagerly or tf.config.functions_run_eagerly():
        raise ArgumentError(
            f"configs[{number}]: run_eagerly=True: the steps of many members run in one compiled loop"
        )
    if strategy_of(model) is not None:
        raise ArgumentError(
            f"configs[{number}]: the model was made under a {type(strategy_of(model)).__name__}: "
            "stoker.fit_many trains on one device"
        )
    for method in ("fit", "evaluate", "make_train_function", "make_test_function"):
        if is_own(model, method):
            raise ArgumentError(
                f"configs[{number}]: {name} has a {method} of its own, which stoker.fit_many would not call: "
                "use stoker.fit for each model"
            )
    for function in ("train_function", "test_function"):
        if is_set_by_user(model, function):
            raise ArgumentError(
                f"configs[{number}]: {name} has a {function} that stoker.fit_many would not call"
            )
