"""Run a program and say how long its steps took, without Stoker: the first step is left out, as in a record.

    python benchmarks/programs/step_clock.py examples/demo.py
    python benchmarks/programs/step_clock.py --device software-gpu examples/demo.py

A clock is put at the end of the body of every innermost loop of the program (outside of compiled functions), and
into Keras' batches. A program whose repair is one call has no loop: it is called twice, and the second time counts.
The last line printed is `steps_s SECONDS STEPS`.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from typing import Any

ticks: list[int] = []
ends: list[int] = []
now = time.perf_counter_ns


def tick() -> None:
    """A step ended."""
    ticks.append(now())


def end_of_loop() -> None:
    """A loop ended: what it launched must have ended, too."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    if context.context().is_async() or tf.config.list_logical_devices("GPU"):
        tf.identity(tf.constant(1.0)).numpy()
        context.async_wait()
        ends.append(now())


class Clock(ast.NodeTransformer):
    """Puts `tick()` into the innermost loops of the program and `end_of_loop()` after the outermost."""

    def __init__(self) -> None:
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # Only the functions that are the program's own flow: a compiled step has its loops inside the graph.
        return self.generic_visit(node) if node.name == "main" else node

    def visit_For(self, node: ast.For) -> Any:
        self.depth += 1
        inner = [n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.For)]
        if inner:
            self.generic_visit(node)
        else:
            node.body.append(_call("__tick__"))
        self.depth -= 1
        return node if self.depth else [node, _call("__end_of_loop__")]


def _call(name: str) -> ast.stmt:
    return ast.parse(f"{name}()").body[0]


def _tick_in_keras() -> None:
    """A batch of `fit` is a step."""
    import keras

    original = keras.callbacks.CallbackList.on_train_batch_end

    def on_train_batch_end(self: Any, batch: int, logs: Any = None) -> None:
        original(self, batch, logs)
        tick()

    keras.callbacks.CallbackList.on_train_batch_end = on_train_batch_end


def _one_call(tree: ast.Module) -> list[ast.stmt]:
    """The statement before the last one (which prints): the repair that is one call."""
    return [tree.body[-2]]


def run(path: str, twice: bool) -> tuple[float, int]:
    """Run the program; seconds and steps of its stepping phase."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    space = {"__name__": "__main__", "__file__": path, "__tick__": tick, "__end_of_loop__": end_of_loop}
    if twice:
        exec(compile(tree, path, "exec"), space)
        again = ast.Module(_one_call(tree), [])
        started = now()
        exec(compile(again, path, "exec"), space)
        end_of_loop()
        return (now() - started) / 1e9, 0
    tree = ast.fix_missing_locations(Clock().visit(tree))
    _tick_in_keras()
    exec(compile(tree, path, "exec"), space)
    end = max(ticks[-1], ends[-1] if ends else 0)
    return (end - ticks[0]) / 1e9, len(ticks) - 1


def main() -> None:
    global now
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "software-gpu"])
    parser.add_argument("--profile", default="a100")
    parser.add_argument("--twice", action="store_true", help="the program is one call: time the second")
    parser.add_argument("program")
    args, words = parser.parse_known_args()
    if args.device == "software-gpu":
        from stoker import software_gpu

        software_gpu.enable(memory="8GiB", profile=args.profile)
        now = software_gpu.now_ns
    sys.argv = [args.program, *words]
    seconds, steps = run(args.program, args.twice)
    print(f"steps_s {seconds} {steps}")


if __name__ == "__main__":
    main()
