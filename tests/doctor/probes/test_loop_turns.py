"""Steps as turns of the user's loops, on the real thing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from stoker.doctor.attach.sites import LIBRARY, Sites
from stoker.doctor.probes.loop_turns import LoopTurns, loops_of
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.session import Session

tf: Any = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")


def nested(items: Any) -> int:
    total = 0
    for item in items:
        while total < item:
            if item % 2:
                total += 1
                continue
            total += 2
    return total


def test_loops_of_a_function() -> None:
    inner, outer = loops_of(nested.__code__)
    first = nested.__code__.co_firstlineno
    assert (outer.line - first, inner.line - first) == (2, 3)
    assert outer.start < inner.start <= inner.end <= outer.end
    assert loops_of((lambda: 1).__code__) == ()


# A body is a list of events (None), loops of so many turns, and calls of functions with a body of their own.
BODIES = st.recursive(
    st.just([None]),
    lambda inner: st.lists(
        st.one_of(st.none(), st.tuples(st.integers(1, 3), inner), st.tuples(st.just(0), inner)),
        min_size=1,
        max_size=3,
    ),
    max_leaves=6,
)


def written(body: Any, functions: list[str], indent: str = "    ") -> list[str]:
    """The source of a body; functions it calls are appended to `functions`."""
    lines = []
    for item in body:
        if item is None:
            lines.append(f"{indent}event()")
        elif item[0]:
            lines += [f"{indent}for _ in range({item[0]}):", *written(item[1], functions, indent + "    ")]
        else:
            inner = written(item[1], functions)
            name = f"function_{len(functions)}"
            functions.append("\n".join([f"def {name}():", *inner]))
            lines.append(f"{indent}{name}()")
    return lines


@given(body=BODIES, again=st.lists(st.booleans(), min_size=1, max_size=7))
@settings(max_examples=150, deadline=None)
def test_the_short_way_tells_the_same_turns(body: Any, again: list[bool]) -> None:
    functions: list[str] = []
    source = "\n".join(["def main():", "    for _ in range(3):", *written(body, functions, " " * 8)])
    sites = Sites()
    sites.kinds[__file__] = LIBRARY
    short, long = LoopTurns(sites), LoopTurns(sites)
    asked = itertools.cycle(again)

    def event() -> None:
        new = next(asked)
        long._last = None
        assert short.list_loops_around(new) == long.list_loops_around(new)

    names: dict[str, Any] = {"event": event}
    exec(compile("\n".join([*functions, source]), "generated.py", "exec"), names)
    names["main"]()


def network(units: int = 1) -> Any:
    return keras.Sequential([keras.Input([4]), keras.layers.Dense(units)])


class Eager:
    """A model with its own optimizer, trained op by op."""

    def __init__(self) -> None:
        self.model, self.optimizer = network(), keras.optimizers.SGD(0.1)

    def train(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.model(x))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss


def compiled_step() -> Any:
    weight = tf.Variable(1.0)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x) * weight
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    return step


def alternating_eager(x: Any) -> None:
    generator, discriminator = Eager(), Eager()
    for _ in range(12):
        generator.train(x)
        discriminator.train(x)


def alternating_compiled(x: Any) -> None:
    one, two = compiled_step(), compiled_step()
    for _ in range(12):
        one(x)
        two(x)


def several_critic_updates(x: Any) -> None:
    critic, generator = compiled_step(), compiled_step()
    for _ in range(12):
        for _ in range(5):
            critic(x)
        generator(x)


def agent_that_trains_every_other_move(x: Any) -> None:
    agent = Eager()
    for _ in range(3):
        moves = 0
        while moves < 4:
            action = np.argmax(agent.model(x))
            moves += 1
            if moves % 2:
                agent.train(x)
    assert action == 0


def arguments_from_a_generator(x: Any) -> None:
    """One instruction reads the rows and calls the function with them."""
    agent = Eager()
    for _ in range(12):
        agent.model.predict(np.ones((1, 4)), verbose=0)
        agent.train(*(tf.constant(rows.numpy()) for rows in [x]))


def agent_by_predict_and_fit(x: Any) -> None:
    model = network()
    model.compile("sgd", "mse")
    for move in range(12):
        value = model.predict(np.ones((1, 4)), verbose=0)
        if move >= 6:
            model.fit(np.ones((1, 4)), value, verbose=0)


def epochs_of_a_function(x: Any) -> None:
    step, target = compiled_step(), compiled_step()
    for _ in range(3):
        for _ in range(12):
            step(x)
        target(x)


def training_nothing(x: Any) -> None:
    data = np.ones((64, 4), np.float32)
    for _ in range(12):
        tensor = tf.convert_to_tensor(data)
        tf.reduce_mean(tensor).numpy()


def eager_inference(x: Any) -> None:
    model = network()
    for _ in range(12):
        np.array_equal(model(x), x)


def several_reads_of_one_print(x: Any) -> None:
    for number in range(12):
        y = x + number
        np.stack([y, y, y])


def step_and_reads_of_it(x: Any) -> None:
    step = compiled_step()
    losses = []
    for _ in range(12):
        losses.append(float(step(x)))
        [loss * 2 for loss in losses]


def one_off_reads_first(x: Any) -> None:
    rows = [row.numpy() for row in tf.data.Dataset.from_tensor_slices(tf.ones([50, 4]))]
    step = compiled_step()
    for _ in range(12):
        step(tf.constant(rows[0]))


def test_step_that_also_tests(x: Any) -> None:
    step, seen = compiled_step(), keras.metrics.Mean()

    @tf.function
    def validate(batch: Any) -> None:
        seen(tf.reduce_mean(batch))

    for _ in range(2):
        for _ in range(6):
            step(x)
        for _ in range(20):
            validate(x)


def test_eager_spans_are_named_by_the_tape_they_follow(session: Session) -> None:
    alternating_eager(tf.ones([2, 4]))
    (window,) = session.steps.windows.all()
    named = {span.site[1] for span in window.spans if span.name == "tape" and isinstance(span.site, tuple)}
    first = Eager.train.__code__.co_firstlineno
    assert named == {first + 1}


def prediction_alone(x: Any) -> None:
    model = network()
    model.predict(np.ones((12 * 32, 4)), verbose=0)


def predictions_in_large_calls(x: Any) -> None:
    model = network()
    for _ in range(2):
        stoker.predict(model, np.ones((6 * 32, 4), np.float32), verbose=0)


PROGRAMS = (
    (alternating_eager, 12),
    (alternating_compiled, 12),
    (several_critic_updates, 12),
    (agent_that_trains_every_other_move, 12),
    (arguments_from_a_generator, 12),
    (agent_by_predict_and_fit, 12),
    (epochs_of_a_function, 36),
    (training_nothing, 12),
    (eager_inference, 12),
    (several_reads_of_one_print, 12),
    (step_and_reads_of_it, 12),
    (one_off_reads_first, 12),
    (test_step_that_also_tests, 12),
    (prediction_alone, 12),
    (predictions_in_large_calls, 12),
)
# Programs, not tests, whatever their names.
test_step_that_also_tests.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(("program", "steps"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_a_step_is_a_turn(session: Session, program: Any, steps: int) -> None:
    program(tf.ones([2, 4]))
    measured = session.measurements()
    assert measured[StepsPart].count == steps
    assert measured[StepsPart].per_s is not None
    assert sum(measured[Books].totals.values()) == measured[Books].wall_ns


def test_leaving_a_with_statement_is_no_loop() -> None:
    """Some versions of Python jump back to what comes after it, from where an exception is swallowed."""

    def step(tapes: Any) -> Any:
        with tapes as tape:
            tape.watch()
        for _ in range(2):
            with tapes as tape:
                tape.watch()
            tape.gradient()
        return tape

    (loop,) = loops_of(step.__code__)
    assert loop.line == step.__code__.co_firstlineno + 3
