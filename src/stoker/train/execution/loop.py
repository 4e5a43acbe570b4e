"""The loop: many steps in one compiled call.

The trip count is an argument, not part of the program. However a pass is cut into calls, the same compiled code runs
the same steps, so the cuts never change a bit. The loop carries the logs (zeros before the first step) instead of
taking the first step out: a second copy of the step would compile, and round, in its own way.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.functions import silence_retracing_warning
from stoker.tf_internals.keras_training import to_numbers
from stoker.tf_internals.types import CompiledFunction, ConcreteFunction, LogValue, Nest, Optional, Tensor
from stoker.train.execution.data_waits import WAITED, WaitClock, add_waits, can_be_measured, shapes_of
from stoker.train.execution.feed import BatchFeed, replace_optionals
from stoker.train.execution.kept_compilations import kept_around
from stoker.train.execution.tracing import drop_trivial_products, lift_variables

Logs = dict[str, LogValue]
# The key of a step's logs that says whether all workers' streams have another batch; only the loop uses it.
MORE = "stoker/more"
Step = Callable[..., Logs]


class CompiledLoop:
    """Runs a step over a feed's batches, `count` of them in one call."""

    def __init__(
        self,
        step: Step,
        feed: BatchFeed,
        *,
        jit: str = "none",
        eager: bool = False,
        autograph: bool = False,
        results: Callable[[], Logs] | None = None,
        closing: Callable[[], Logs] | None = None,
        together: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """Nothing is traced before the first `run` (or `build`).

        Args:
            step: takes a batch, updates variables and returns logs. Traced once.
            feed: the source of the batches; may be replaced by a feed with an equal `signature()`.
            jit: XLA over the whole "loop" (resident data only), over the "step", or "none"; for "update", the step
                itself compiles it.
            eager: call the step eagerly, batch by batch, and compile nothing.
            autograph: let Python's `if` and `while` on tensors in the step become graph ops.
            results: returns the logs after the last step of a call, in place of those that each step returns.
            closing: returns logs after the last step of a call, besides those that each step returns.
            together: for one of several workers with a stream each: tells, in graph, whether a flag is set on all of
                them. The step then takes `(batch, more)`, where `more` says whether the stream has another batch, and
                its logs say under `MORE` whether all streams do. The first stream to run out ends the loop for all
                workers.
        """
        if jit == "loop" and feed.kind != "resident":
            raise ArgumentError("XLA over the whole loop needs resident data: a stream comes from the host")
        self.feed = feed
        self.jit = jit
        self.eager = eager
        self._ran: Tensor | int = 0
        self._waited: Tensor | float = 0.0
        self._compiled: set[int] = set()
        self._measures_waits = can_be_measured(feed)
        self.owner: object = None
        # How long a step took last, if known: then calls have a good length from the start.
        self.step_seconds: float | None = None
        self.when_traced: Callable[[], None] = lambda: None
        self._plain_step = step
        self._results = results
        self._closing = closing
        self._together = together if feed.kind == "streamed" else None
        self._for_any_rows: ConcreteFunction = None
        self._step = _compile(drop_trivial_products(lift_variables(step)), jit == "step", autograph)
        self._traced: ConcreteFunction = None
        self._logs: Nest = None
        self._many = _compile(self._run_many_steps, jit == "loop")
        self._until_out = _compile(self._run_until_out, False)
        self._last = _compile(self._last_step, jit == "loop")

    def share(self, other: CompiledLoop) -> None:
        """Take over another loop's traced step, if that step is the same but for XLA around it."""
        alike = not {"step", "update"} & {self.jit, other.jit} and (self._together is None) == (
            other._together is None
        )
        if alike and other._traced is not None:
            self._step, self._traced, self._logs = other._step, other._traced, other._logs

    def release(self) -> None:
        """Drop the feed with its data. The loop is kept for the model's next run, which brings its own feed."""
        vars(self).pop("feed", None)

    @property
    def trace_count(self) -> int:
        """Return how many times a function of the loop was traced; a call that compiles traces first."""
        parts = (self._step, self._many, self._until_out, self._last)
        return sum(part.experimental_get_tracing_count() for part in parts)

    @property
    def ran(self) -> int:
        """The number of steps in the last `run`: fewer than asked if a stream ran out. Reads the device."""
        return int(self._ran)

    def build(self) -> tf.types.experimental.ConcreteFunction:
        """Trace the step once, which creates its variables; return its concrete function."""
        if self._traced is None:
            flag = [] if self._together is None else [tf.TensorSpec([], tf.bool)]
            self._traced = self._step.get_concrete_function(self.feed.spec(), *flag)
            returned = _tensors(self._traced.structured_outputs)
            if self._together is not None:
                returned = {name: value for name, value in returned.items() if name != MORE}
            self._logs = tf.nest.map_structure(lambda out: tf.TensorSpec(out.shape, out.dtype), returned)
            self.when_traced()
        return self._traced

    @property
    def waited_s(self) -> float:
        """The seconds that the steps of the last `run` waited for data, if measured."""
        return float(self._waited)

    @property
    def logs_are_open(self) -> bool:
        """Whether a step returns a value whose shape is not known beforehand, which XLA cannot carry along."""
        self.build()
        return not all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(self._logs))

    def run(self, first: int, count: int) -> Logs:
        """Run steps `first` to `first + count - 1` of the pass; return the last step's logs, still on the device."""
        if self.eager:
            return self._run_eagerly(first, count)
        self.build()
        operands = self.feed.operands()
        logs: Logs
        if not self.feed.is_counted or self._together is not None:
            self._ran, logs = self._call(self._until_out, tf.constant(count), operands)
            self._waited = logs.pop(WAITED, 0.0)
            return logs
        self._ran = count
        # XLA needs one shape of batch. Without XLA, a shorter last batch is a step like the others: TensorFlow would
        # have to optimize a separate function for it, which slows a short job.
        whole = min(count, self._read_full_steps() - first) if self.jit == "loop" else count
        if whole > 0:
            logs = self._call(self._many_function(), tf.constant(first), tf.constant(whole), operands)
            self._waited = logs.pop(WAITED, 0.0)
        if count > whole:
            logs = self._call(self._last, operands)
        return logs

    def _call(self, function: CompiledFunction, *operands: Nest) -> Nest:
        """Call a function. At its first call XLA compiles it, or uses what an earlier process has compiled."""
        if self.jit == "none" or id(function) in self._compiled:
            return function(*operands)
        self._compiled.add(id(function))
        with kept_around():
            return function(*operands)

    def _many_function(self) -> ConcreteFunction:
        """Return the traced function that serves a feed with any number of rows."""
        specs = self.feed.operand_specs()
        if specs is None:
            return self._many
        if self._for_any_rows is None:
            number = tf.TensorSpec([], tf.int32)
            self._for_any_rows = self._many.get_concrete_function(number, number, specs)
        return self._for_any_rows

    def _read_full_steps(self) -> int:
        full = self.feed.full_steps
        assert full is not None
        return full

    def _run_many_steps(self, first: tf.Tensor, count: tf.Tensor, operands: Nest) -> Nest:
        end = first + count

        def body(index: tf.Tensor, _: Nest, waits: Nest) -> Nest:
            batch = self.feed.batch(operands, index, whole=self.jit == "loop")
            logs, waits = self._step_between(batch, batch, waits)
            return index + 1, self._carry(logs), waits

        waits = self._start_waits()
        _, logs, waits = tf.while_loop(
            lambda index, _, __: index < end,
            body,
            (first, self._zeros(), waits),
            shape_invariants=(tf.TensorShape([]), self._shapes(), shapes_of(waits)),
        )
        return add_waits(self._finish(logs), waits)

    def _start_waits(self) -> Nest:
        return WaitClock.start() if self._measures_waits else ()

    def _step_between(self, batch: Nest, arrived: Nest, waits: Nest) -> tuple[Nest, Nest]:
        """In the graph, run a step, and read the clock before and after if waits are measured."""
        if not waits:
            return self._traced(batch), waits
        waits = waits.note_arrival(arrived)
        logs = self._traced(batch)
        return logs, waits.note_step(logs)

    def _run_until_out(self, count: tf.Tensor, operands: Nest) -> Nest:
        # The loop itself asks whether there is a batch. Otherwise the step would be inside a `cond` of its own, which
        # passes every variable through a switch. The loop takes no batch that this call will not use.
        def take_if(wanted: tf.Tensor) -> Optional:
            nothing = tf.experimental.Optional.empty(operands.element_spec)
            return tf.cond(wanted, operands.get_next_as_optional, lambda: nothing)

        if self._together is not None:
            return self._run_together_until_out(count, take_if)

        def body(ran: tf.Tensor, taken: Optional, _: Nest, waits: Nest) -> Nest:
            logs, waits = self._step_between(replace_optionals(taken.get_value()), taken, waits)
            return ran + 1, take_if(ran + 1 < count), self._carry(logs), waits

        waits = self._start_waits()
        taken = take_if(count > 0)
        ran, _, logs, waits = tf.while_loop(
            lambda ran, taken, _, __: taken.has_value(),
            body,
            (tf.constant(0), taken, self._zeros(), waits),
            shape_invariants=(
                tf.TensorShape([]),
                tf.type_spec_from_value(taken),
                self._shapes(),
                shapes_of(waits),
            ),
        )
        return ran, add_waits(self._finish(logs), waits)

    def _run_together_until_out(self, count: tf.Tensor, take_if: Callable[[Tensor], Optional]) -> Nest:
        """Keep the workers in step: the step's own collective says whether all of them have another batch."""
        assert self._together is not None

        def body(ran: tf.Tensor, _go: Tensor, taken: Optional, _: Nest) -> Nest:
            following = take_if(ran + 1 < count)
            more = following.has_value() | (ran + 1 >= count)
            logs = dict(self._traced(replace_optionals(taken.get_value()), more))
            going = logs.pop(MORE)
            return ran + 1, going & (ran + 1 < count), following, self._carry(logs)

        taken = take_if(count > 0)
        ran, _, _, logs = tf.while_loop(
            lambda ran, go, taken, _: go,
            body,
            (tf.constant(0), self._together(taken.has_value()), taken, self._zeros()),
            shape_invariants=(
                tf.TensorShape([]),
                tf.TensorShape([]),
                tf.type_spec_from_value(taken),
                self._shapes(),
            ),
        )
        return ran, self._finish(logs)

    def _last_step(self, operands: Nest) -> Nest:
        return self._finish(self._carry(self._traced(self.feed.tail(operands))))

    def _carry(self, logs: Nest) -> Nest:
        """Return the values that go from step to step."""
        return {} if self._results is not None else _tensors(logs)

    def _finish(self, logs: Nest) -> Nest:
        """Return the result of a call, after its last step."""
        if self._results is not None:
            return _tensors(self._results())
        return logs if self._closing is None else {**logs, **_tensors(self._closing())}

    def _zeros(self) -> Nest:
        if self._results is not None:
            return {}
        return tf.nest.map_structure(
            lambda out: tf.zeros(
                [size or 0 for size in out.shape.as_list()] if out.shape.rank else [], out.dtype
            ),
            self._logs,
        )

    def _shapes(self) -> Nest:
        if self._results is not None:
            return {}
        return tf.nest.map_structure(lambda out: out.shape, self._logs)

    def _run_eagerly(self, first: int, count: int) -> Logs:
        logs: Logs = {}
        operands = self.feed.operands()
        self._ran = 0
        for index in range(first, first + count):
            try:
                if self.feed.steps is not None and index >= self._read_full_steps():
                    batch = self.feed.tail(operands)
                else:
                    batch = self.feed.batch(operands, tf.constant(index))
            except tf.errors.OutOfRangeError:
                break
            logs = self._plain_step(batch)
            self._ran += 1
        return logs


def numbers(logs: Logs) -> Logs:
    """Read logs from the device, keeping their order and their dicts; callbacks get them flattened and sorted."""
    return {
        name: numbers(value) if isinstance(value, dict) else to_numbers({name: value})[name]
        for name, value in logs.items()
    }


def _tensors(logs: Nest) -> Nest:
    """Return the step's logs as tensors; a number that Python knows becomes a constant of the graph."""
    return tf.nest.map_structure(tf.convert_to_tensor, logs)


def _compile(function: Callable[..., object], jit: bool, autograph: bool = False) -> CompiledFunction:
    compiled = tf.function(function, autograph=autograph, jit_compile=True if jit else None)
    # Every loop has functions of its own, traced once. TensorFlow's warning would only mean a second model.
    silence_retracing_warning(compiled)
    return compiled
