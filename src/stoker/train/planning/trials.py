"""Trials of a compiled loop with and without XLA, from the same state, which is restored bit for bit."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import tensorflow as tf

from stoker import clock
from stoker.errors import first_line
from stoker.processors import ProcessorUse
from stoker.tf_internals.types import ConcreteFunction, Tensor
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.kept_compilations import are_kept
from stoker.train.execution.loop import CompiledLoop
from stoker.train.planning.choices import JitChoice

# A job shorter than this without XLA would not earn back the time for compiling and trying.
SHORTEST_JOB_S = 8.0
# If later runs find the compilation, only the first one pays for it. Then a job of half that length is worth a try, and
# the savings of XLA over this many runs must exceed the time for compiling.
_KEPT_SHORTER, _KEPT_RUNS = 0.5, 3
# How many steps from one start are compared between two candidates, and how far apart the results may be.
_STEPS_COMPARED = 8
_TOLERANCE = 0.05
# The length of a trial call, and its largest share of the job. The candidates take turns at least this often, and more
# often while there is time, since the machine may be busy during some of the calls.
_TRIAL_S = 0.1
_TRIAL_SHARE = 0.005
_FEWEST_TRIALS = 3
_MOST_TRIALS = 15
_TRIALS_S = 1.0
_TRIALS_SHARE = 0.05
# The choice is kept for good, so a gain that a busy machine could fake does not count.
_LEAST_GAIN = 1.2

# Returns the loop to try, given what XLA compiles of it.
MakeLoop = Callable[[str], CompiledLoop]


@dataclass(frozen=True)
class Trial:
    """A trial of XLA.

    Attributes:
        feed: the data.
        loops: returns the candidates.
        total_steps: the number of steps in the whole job.
        way: what XLA compiles: the "loop" or the "step".
    """

    feed: BatchFeed
    loops: MakeLoop
    total_steps: int
    way: str

    def run(self, concrete: ConcreteFunction) -> JitChoice:
        """Run both candidates from the same state; return which one to use, and why."""
        state = Snapshot.of_step(concrete)
        self.feed.begin_epoch(0)
        try:
            return self._compare(state)
        finally:
            state.restore()

    def _compare(self, state: Snapshot) -> JitChoice:
        full = self.feed.full_steps
        assert full is not None
        few = min(_STEPS_COMPARED, full)
        plain = self.loops("none")
        _time(plain, few)
        plain_end = state.read()
        job_s = _time(plain, few) * self.total_steps
        steps = min(full, max(few, int(min(_TRIAL_S, _TRIAL_SHARE * job_s) * self.total_steps / job_s)))
        plain_s = _time(plain, steps)
        job_s = plain_s * self.total_steps
        figures = {"none_us": round(plain_s * 1e6, 1)}
        if job_s < SHORTEST_JOB_S * (_KEPT_SHORTER if are_kept() else 1.0):
            reason = f"XLA not tried: {job_s:.1f} s of training would not repay compiling"
            return {"jit": "none", "reason": reason, "figures": figures}
        state.restore()
        compiled = self.loops(self.way)
        begin = clock.now_ns()
        try:
            _time(compiled, few)
        except tf.errors.OpError as error:
            reason = f"XLA cannot compile it: {first_line(str(error.message) or error)[:120]}"
            return {"jit": "none", "reason": reason, "figures": figures}
        figures["compile_s"] = round((clock.now_ns() - begin) / 1e9, 3)
        apart = difference(state.values, plain_end, state.read())
        figures["apart"] = apart if apart < 1e9 else 1e9
        if apart > _TOLERANCE:
            return {"jit": "none", "reason": "XLA's results differ", "figures": figures}
        return self._choose_faster(plain, compiled, steps, figures)

    def _choose_faster(
        self, plain: CompiledLoop, compiled: CompiledLoop, steps: int, figures: dict[str, float]
    ) -> JitChoice:
        none: list[float] = []
        loop: list[float] = []
        begin = clock.now_ns()
        budget = min(_TRIALS_S, _TRIALS_SHARE * figures["none_us"] / 1e6 * self.total_steps)
        while len(none) < _FEWEST_TRIALS or (
            len(none) < _MOST_TRIALS and (clock.now_ns() - begin) / 1e9 < budget
        ):
            # They take turns in going first, so that neither always runs with warm caches.
            if len(none) % 2:
                loop.append(_time_undisturbed(compiled, steps))
            none.append(_time_undisturbed(plain, steps))
            if len(loop) < len(none):
                loop.append(_time_undisturbed(compiled, steps))
        figures |= {
            "none_us": round(min(none) * 1e6, 1),
            f"{self.way}_us": round(min(loop) * 1e6, 1),
            "trials": len(none),
        }
        compile_s = figures["compile_s"] / (_KEPT_RUNS if are_kept() else 1)
        jit, reason = choose_by_times(none, loop, self.total_steps, compile_s, self.way)
        return {"jit": jit, "reason": reason, "figures": figures}


def choose_by_times(
    none: Sequence[float], loop: Sequence[float], total_steps: int, compile_s: float, way: str = "loop"
) -> tuple[str, str]:
    """Choose from the seconds per step of each candidate: XLA only if it wins by the best and by the median.

    `compile_s` is the time that each run spends on compiling.
    """
    pairs = [(min(none), min(loop)), (statistics.median(none), statistics.median(loop))]
    gain = min(without / within for without, within in pairs)
    saved_s = min(without - within for without, within in pairs) * total_steps
    if gain < _LEAST_GAIN:
        return "none", f"XLA is only {gain:.2f}x as fast here"
    # What a run saves must exceed what it pays for compiling.
    if saved_s <= compile_s:
        return "none", f"XLA is {gain:.1f}x as fast here, which saves less than compiling takes"
    return way, f"XLA is {gain:.1f}x as fast here"


def _time_undisturbed(loop: CompiledLoop, steps: int) -> float:
    """Return seconds per step without waits for cores: on busy cores, many threads are as slow as one."""
    before = ProcessorUse.up_to_now()
    seconds = _time(loop, steps)
    return seconds * measure_share_that_ran(before)


def _time(loop: CompiledLoop, steps: int) -> float:
    """Return seconds per step of one call, until its results have arrived."""
    begin = clock.now_ns()
    logs = loop.run(0, steps)
    for value in tf.nest.flatten(logs):
        value.numpy()
    return (clock.now_ns() - begin) / 1e9 / steps


def measure_share_that_ran(before: ProcessorUse) -> float:
    """Return the share of threads' runnable time in which they ran; 1 if none waited, or if unknown."""
    use = ProcessorUse.up_to_now().since(before)
    return use.ran / (use.ran + use.all_waited) if use.ran > 0 else 1.0


class Snapshot:
    """Copies of a step's variables, on their own devices: taken before a trial and restored after it, bit for bit."""

    def __init__(self, variables: Iterable[tf.Variable]) -> None:
        self.variables = list(variables)
        self.values = [tf.identity(variable.read_value()) for variable in self.variables]

    @classmethod
    def of_step(cls, concrete: tf.types.experimental.ConcreteFunction) -> Snapshot:
        """Copy all that a traced step reads or writes: weights, optimizer, metrics, random seeds and anything else."""
        return cls(concrete.graph.variables)

    def restore(self) -> None:
        """Restore the variables from the copies."""
        for variable, value in zip(self.variables, self.values, strict=True):
            variable.assign(value)

    def read(self) -> list[tf.Tensor]:
        """Return the current values of the variables."""
        return [tf.identity(variable.read_value()) for variable in self.variables]


def difference(start: Sequence[tf.Tensor], one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """Return how far apart two runs of the same steps end, relative to how far they moved; inf if they disagree.

    Rounding makes single weights differ (an optimizer may turn a gradient of 1e-12 into a full step either way), so the
    measure covers all weights together. Counters and seeds must agree exactly.
    """
    apart = 0.0
    way = 0.0
    for before, left, right in zip(start, one, other, strict=True):
        if not before.dtype.is_floating:
            if not bool(tf.reduce_all(tf.equal(left, right))):
                return float("inf")
            continue
        gap = tf.cast(left, tf.float64) - tf.cast(right, tf.float64)
        moved = tf.cast(left, tf.float64) - tf.cast(before, tf.float64)
        apart += float(tf.reduce_sum(gap * gap))
        way += float(tf.reduce_sum(moved * moved))
    if apart != apart or way != way:
        return float("inf")
    return float((apart / way) ** 0.5) if way else float(apart > 0)
