"""Choose an engine: the fastest one, on the bundle's own examples, that reproduces their answers.

One row and many rows are measured separately: an engine that is fast for one may not be for a batch. The choice is kept
in `.stoker/plans`, keyed by the content of the bundle, the machine and the versions. If that cannot be written, engines
are measured again each time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib import metadata

import numpy as np
import tensorflow as tf

from stoker import clock
from stoker.errors import first_line
from stoker.files import PLANS, write_atomically
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError
from stoker.serve.engines import converted, tensorflow
from stoker.serve.examples import Arrays
from stoker.serve.proof import describe_difference, read_recordings
from stoker.serve.signature import Array

# Larger weights are not loaded several times for a comparison: the first engine that is right is taken.
_MOST_COMPARED_BYTES = 256 << 20
_TRIES, _MANY_TRIES = 20, 5
_MANY = 64
# XLA compiles for every number of rows, which takes seconds each time, so it is used only if asked for.
_ONLY_NAMED = ("xla",)
# How much faster a second engine must be for many rows to be worth its memory.
_WORTH = 1.5
_WRONG = "{} does not give its recorded answers here: see stoker bundle --verify"
_Recorded = tuple[Arrays, Arrays]


@dataclass(frozen=True)
class Engine:
    """The engine that computes the answers.

    Attributes:
        name: the name of the engine for one row.
        run: computes output arrays from input arrays.
        row_seconds: how long a single row took.
        many: the name of the engine for several rows.
        figures: seconds for one row and for `_MANY` rows, by engine, if they were compared.
    """

    name: str
    run: Run
    row_seconds: float
    many: str = ""
    figures: dict[str, tuple[float, float]] | None = None

    def __str__(self) -> str:
        """Say in one line which engine it is, how fast, and compared with which."""
        line = f"engine {self.name}, {1e6 * self.row_seconds:.0f} us a row"
        if self.many and self.many != self.name:
            line += f"; {self.many} for several rows"
        others = [f"{name} {1e6 * one:.0f}" for name, (one, _) in (self.figures or {}).items()]
        return f"{line} (measured: {', '.join(others)} us)" if len(others) > 1 else line


def ways_of(known: Bundle) -> dict[str, Callable[[], Run]]:
    """Return every engine this bundle can have, each with its loader."""
    ways: dict[str, Callable[[], Run]] = {
        "session": functools.partial(tensorflow.session, known, "SINGLE_THREADED_EXECUTOR"),
        "threads": functools.partial(tensorflow.session, known, ""),
        "function": functools.partial(tensorflow.function, known),
        "xla": functools.partial(tensorflow.xla, known),
    }
    return ways | {name: functools.partial(converted.load_engine, known, name) for name in converted.FILES}


def choose_engine(known: Bundle, name: str | None) -> Engine:
    """Choose the engine to use.

    Args:
        known: the bundle.
        name: the engine to use, instead of measuring.

    Raises:
        BundleError: there is no such engine, or none gives the recorded answers.
    """
    ways = ways_of(known)
    examples = read_recordings(known)
    if name is not None:
        return _use_named_engine(known, ways, name, examples)
    key = _key(known)
    kept = _recall(key, ways)
    if kept is not None:
        one, many = ways[kept[0]](), ways[kept[1]]() if kept[1] != kept[0] else None
        loaded = ((kept[0], one), (kept[1], many))
        right = all(_is_right(known, way, run, examples) for way, run in loaded if run is not None)
        if right:
            run = one if many is None else _split_by_rows(one, many)
            return Engine(kept[0], run, _seconds(known, one, examples, 1, _TRIES), kept[1])
    found = _compare_engines(known, ways, examples)
    _remember(key, found)
    return found


def _use_named_engine(
    known: Bundle, ways: dict[str, Callable[[], Run]], name: str, examples: _Recorded
) -> Engine:
    if name not in ways:
        raise BundleError(f"engine {name!r} is not one of {', '.join(ways)}")
    run = ways[name]()
    right = _is_right(known, name, run, examples)
    if right is None:
        raise BundleError(f"engine {name!r} cannot run {known.path}: it lacks an operation")
    if not right:
        raise BundleError(f"engine {name!r} does not give the recorded answers of {known.path} here")
    return Engine(name, run, _seconds(known, run, examples, 1, _TRIES), name)


def _compare_engines(known: Bundle, ways: dict[str, Callable[[], Run]], examples: _Recorded) -> Engine:
    have = converted.names_of(known)
    runs: dict[str, Run] = {}
    figures: dict[str, tuple[float, float]] = {}
    for way in ways:
        if way in _ONLY_NAMED:
            continue
        if way in converted.FILES and (way not in have or not converted.is_installed(way)):
            continue
        if runs and known.weight_bytes > _MOST_COMPARED_BYTES:
            break
        run = ways[way]()
        right = _is_right(known, way, run, examples)
        if right is False and way not in converted.FILES:
            # A converted model may round differently on another machine; the SavedModel must not.
            raise BundleError(_WRONG.format(known.path))
        if right:
            runs[way] = run
            figures[way] = (
                _seconds(known, run, examples, 1, _TRIES),
                _seconds(known, run, examples, _MANY, _MANY_TRIES),
            )
    if not runs:
        raise BundleError(_WRONG.format(known.path))
    one = min(figures, key=lambda way: figures[way][0])
    many = min(figures, key=lambda way: figures[way][1])
    # A row must not get different answers alone and in a batch, as a quantised engine beside another one would give.
    mixes = any(converted.allowed_of(known, way) for way in (one, many))
    if mixes or figures[one][1] < _WORTH * figures[many][1]:
        many = one
    run = runs[one] if one == many else _split_by_rows(runs[one], runs[many])
    return Engine(one, run, figures[one][0], many, figures)


def _split_by_rows(one: Run, many: Run) -> Run:
    return lambda arrays: (one if len(arrays[0]) == 1 else many)(arrays)


def _is_right(known: Bundle, name: str, run: Run, examples: _Recorded) -> bool | None:
    """Return whether an engine gives the recorded answers; None if it cannot run at all."""
    inputs, answers = examples
    try:
        found = run([inputs[field.name] for field in known.signature.inputs])
    except tf.errors.OpError:
        return None  # the single-threaded executor does not take every graph
    except Exception as error:  # noqa: BLE001 - an engine raises what it likes when a model is not as it is described
        raise BundleError(f"{known.path} cannot answer its own examples: {first_line(error)}") from None
    beside = {field.name: one for field, one in zip(known.signature.outputs, found, strict=True)}
    allowed = converted.allowed_of(known, name)
    return not any(
        describe_difference(field, beside[field.name], answers[field.name], beside, allowed)
        for field in known.signature.outputs
    )


def _seconds(known: Bundle, run: Run, examples: _Recorded, rows: int, tries: int) -> float:
    """Return the median time of some calls."""
    inputs, _ = examples
    given = [_rows(inputs[field.name], rows) for field in known.signature.inputs]
    run(given)
    times = []
    for _ in range(tries):
        started = clock.now_ns()
        run(given)
        times.append(clock.now_ns() - started)
    return sorted(times)[tries // 2] / 1e9


def _rows(array: Array, rows: int) -> Array:
    return array[:1] if rows == 1 else np.concatenate([array] * -(-rows // len(array)))[:rows]


def _key(known: Bundle) -> str:
    """Return the key of a choice: the bundle's content, the machine, the versions."""
    parts = [
        known.description["files"],
        platform.processor() or platform.machine(),
        os.cpu_count(),
        tf.__version__,
        [one.name for one in tf.config.list_physical_devices()],
        list(_versions(converted.RUNTIMES.values())),
    ]
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=12).hexdigest()


def _versions(modules: Iterable[str]) -> Iterable[str]:
    for name in modules:
        try:
            yield metadata.version(name.replace("_", "-"))
        except metadata.PackageNotFoundError:
            yield ""


def _recall(key: str, ways: Collection[str]) -> tuple[str, str] | None:
    try:
        choice = json.loads((PLANS / f"{key}.json").read_text(encoding="utf-8"))
        found = (str(choice["engine"]), str(choice["many"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if all(name in ways for name in found) else None


def _remember(key: str, engine: Engine) -> None:
    kept = {"engine": engine.name, "many": engine.many, "figures": engine.figures}
    try:
        PLANS.mkdir(parents=True, exist_ok=True)
        write_atomically(PLANS / f"{key}.json", json.dumps(kept))
    except OSError:
        return  # a read-only place: engines are measured again each time
