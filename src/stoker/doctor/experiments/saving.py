"""Recorded steps in a file beside the run's record, so that another process can time their repairs again.

The file is a zip archive: `steps.json` says what the steps consist of; tensors and compiled functions are members of
their own. The file holds data that the program computed with, so only its owner can read it. No file holds what an
iterator or a table gives, so ops that would have to run on one cannot be timed from a file.
"""

from __future__ import annotations

import dataclasses
import io
import json
import linecache
import re
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.experiments.marking import MOST_MARKS, MarkedStep
from stoker.doctor.experiments.plain_values import NotPlain, from_plain, is_json, to_plain
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, add_hidden_reads
from stoker.doctor.experiments.recorded_step import (
    Conversion,
    Event,
    RecordedFeed,
    RecordedOp,
    RecordedRead,
    RecordedStep,
    is_handle,
    read_variables,
)
from stoker.errors import RecordError
from stoker.files import replacing
from stoker.tf_internals import eager, recorded_ops
from stoker.tf_internals.types import ProtoMessage, Tensor, Variable

_SCHEMA = 2
_CONTENTS = "steps.json"
# How many graphs of one function are saved at most.
_MAX_GRAPHS = 64
_GRAPH_OF = re.compile(r"__(?:inference|forward)_(.+)_\d+")

Json = Any


@dataclasses.dataclass
class LoadedStep(RecordedStep):
    """A step from a file, with variables in place of the program's, which live as long as the step."""

    variables: list[Variable] = dataclasses.field(default_factory=list)


def write_steps(steps: Iterable[RecordedStep], path: Path) -> None:
    """Save steps, all or nothing. No probes may be attached.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path, private=True) as file, zipfile.ZipFile(file, "w") as archive:
        members = _Members(archive)
        contents = {
            "schema": _SCHEMA,
            "steps": [_StepWriter(step, members).contents() for step in steps],
            "sources": members.sources,
        }
        archive.writestr(_CONTENTS, json.dumps(contents))


def read_steps(path: Path) -> list[LoadedStep]:
    """Read steps, with new variables in place of the program's.

    Raises:
        RecordError: the file does not exist, is damaged, or is from a different version of Stoker.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            contents = json.loads(archive.read(_CONTENTS))
            if contents["schema"] != _SCHEMA:
                raise RecordError(f"{path} is from a different version of Stoker: run the program again")
            steps = [_StepReader(step, archive).step() for step in contents["steps"]]
    except FileNotFoundError:
        raise RecordError(f"no step was kept at {path}") from None
    except (OSError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile) as error:
        raise RecordError(f"{path} is damaged ({type(error).__name__}: {error}): delete it") from None
    for name, text in contents["sources"].items():
        # The source as it was, even if the file has changed since.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return steps


class _Members:
    """The members of the archive, and the sources of the program's files."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._count = 0
        self.sources: dict[str, str] = {}

    def add(self, data: bytes) -> str:
        """Write these bytes to a member of their own; return its name."""
        name = f"{self._count}"
        self._count += 1
        self._archive.writestr(name, data)
        return name

    def stack(self, stack: Sequence[SiteKey]) -> Json:
        """Return the lines of a stack as findings name them, and note the sources of their files."""
        for file, _, _ in stack:
            shown = shown_path(file)
            if shown not in self.sources:
                self.sources[shown] = "".join(linecache.getlines(file))
        return [[shown_path(file), line, function] for file, line, function in stack]


class _StepWriter:
    """Turns a step into plain data."""

    def __init__(self, step: RecordedStep, members: _Members) -> None:
        add_hidden_reads(step)
        self._step = step
        self._members = members
        self._current = read_variables(step.handles())
        self._variables = {id(handle): number for number, (handle, _) in enumerate(self._current)}

    def contents(self) -> Json:
        """Return the step."""
        step = self._step
        return {
            "variables": [
                [self._tensor(value), recorded_ops.variable_shape(h)] for h, value in self._current
            ],
            "values": [self._value(tensor) for tensor in step.values],
            "before": [[self._variables[id(h)], self._tensor(value)] for h, value in step.before],
            "after": [[self._variables[id(h)], self._tensor(value)] for h, value in step.after],
            "events": [self._event(event) for event in step.events],
            "functions": [self._members.add(made.SerializeToString()) for made in _functions_of(step)],
            "held": sorted(step.held),
            "count": step.count,
            "marks": [mark._asdict() for mark in step.marks],
        }

    def _tensor(self, tensor: Tensor) -> Json:
        import tensorflow as tf

        return [self._members.add(tf.io.serialize_tensor(tensor).numpy()), tensor.dtype.name]

    def _value(self, tensor: Tensor) -> Json:
        if id(tensor) in self._variables:
            return {"variable": self._variables[id(tensor)]}
        return {"lost": tensor.dtype.name} if is_handle(tensor) else {"tensor": self._tensor(tensor)}

    def _event(self, event: Event) -> Json:
        stack = self._members.stack(event.stack)
        if isinstance(event, RecordedRead):
            return {"read": event.value, "stack": stack}
        if isinstance(event, RecordedFeed):
            return {"feed": event.value, "data": self._data(event), "stack": stack, "plain": event.is_plain}
        try:
            attributes = [to_plain(value) for value in event.attributes]
        except NotPlain:
            attributes = None
        return {
            "op": event.name,
            "inputs": event.inputs,
            "attributes": attributes,
            "outputs": event.outputs,
            "stack": stack,
            "place": event.place,
        }

    def _data(self, feed: RecordedFeed) -> Json:
        """Return the host data of a feed; None for data that is not plain."""
        if not isinstance(feed.convert, Conversion) or not feed.is_plain:
            return None
        try:
            dtype = to_plain(feed.convert.dtype)
        except NotPlain:
            return None
        value = feed.convert.value
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            held = io.BytesIO()
            np.save(held, value, allow_pickle=False)
            return {"array": self._members.add(held.getvalue()), "dtype": dtype}
        return {"python": value, "dtype": dtype} if is_json(value) else None


def _functions_of(step: RecordedStep) -> list[ProtoMessage]:
    """Return the compiled functions of a step, and other graphs of the same functions, which are for other shapes."""
    stems = {_stem(op.name) for op in step.ops() if op.name in step.functions} - {""}
    alike = [name for name in recorded_ops.compiled_function_names() if _stem(name) in stems][:_MAX_GRAPHS]
    return list(recorded_ops.gather_functions(alike, step.functions).values())


def _stem(name: str) -> str:
    """Return the Python function that a compiled one was traced from; "" if the name does not say."""
    match = _GRAPH_OF.fullmatch(name)
    return match[1] if match else ""


class _StepReader:
    """Rebuilds a step from plain data."""

    def __init__(self, contents: Json, archive: zipfile.ZipFile) -> None:
        self._contents = contents
        self._archive = archive

    def step(self) -> LoadedStep:
        """Return the step, rebuilt in this process."""
        import tensorflow as tf

        contents = self._contents
        step = LoadedStep(None, count=contents["count"], held=frozenset(contents["held"]))
        step.variables = [
            tf.Variable(self._tensor(value), trainable=False, shape=tf.TensorShape(shape))
            for value, shape in contents["variables"]
        ]
        handles = [variable.handle for variable in step.variables]
        for value in contents["values"]:
            step.values.append(self._value(value, handles, step))
        step.numbers = {id(tensor): number for number, tensor in enumerate(step.values)}
        step.lost = frozenset(n for n, value in enumerate(contents["values"]) if "lost" in value)
        step.before = [(handles[n], self._tensor(value)) for n, value in contents["before"]]
        step.after = [(handles[n], self._tensor(value)) for n, value in contents["after"]]
        step.events = [self._event(event) for event in contents["events"]]
        definitions = [recorded_ops.parse_function(self._archive.read(n)) for n in contents["functions"]]
        step.functions = {made.signature.name: made for made in definitions}
        step.marks = deque((_mark(mark) for mark in contents["marks"]), maxlen=MOST_MARKS)
        return step

    def _tensor(self, data: Json) -> Tensor:
        import tensorflow as tf

        name, dtype = data
        return tf.io.parse_tensor(self._archive.read(name), tf.as_dtype(dtype))

    def _value(self, data: Json, handles: Sequence[Tensor], step: LoadedStep) -> Tensor:
        import tensorflow as tf

        if "variable" in data:
            return handles[data["variable"]]
        if "tensor" in data:
            return self._tensor(data["tensor"])
        if data["lost"] == "variant":
            return tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=0, element_dtype=tf.float32)
        # A stand-in with a handle: nothing that takes it is run.
        step.variables.append(tf.Variable(0.0, trainable=False))
        return step.variables[-1].handle

    def _event(self, data: Json) -> Event:
        stack = tuple((file, line, function) for file, line, function in data["stack"])
        if "read" in data:
            return RecordedRead(data["read"], stack)
        if "feed" in data:
            return RecordedFeed(data["feed"], self._conversion(data["data"]), stack, data["plain"])
        attributes = tuple(from_plain(value) for value in data["attributes"] or ())
        inputs, outputs = tuple(data["inputs"]), tuple(data["outputs"])
        whole = data["attributes"] is not None
        return RecordedOp(data["op"], inputs, attributes, outputs, stack, data["place"], whole)

    def _conversion(self, data: Json) -> Callable[[], Tensor]:
        if data is None:
            return _refuse_conversion
        owner, name = eager.host_conversion()
        value = data.get("python")
        if "array" in data:
            value = np.load(io.BytesIO(self._archive.read(data["array"])), allow_pickle=False)
        return Conversion(getattr(owner, name), value, eager.current_context(), from_plain(data["dtype"]))


def _refuse_conversion() -> Tensor:
    raise CannotRebuildStep("the file does not hold what the step was fed")


def _mark(data: Json) -> MarkedStep:
    by_place = {
        name: {int(n): ns for n, ns in data[name].items()} for name in ("cpu", "python_cpu", "edges_cpu")
    }
    return MarkedStep(**{**data, **by_place})
