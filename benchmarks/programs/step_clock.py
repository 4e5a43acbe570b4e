"""Run a program and say how long its steps took, without Stoker: the first step is left out, as in a record.

    python benchmarks/programs/step_clock.py examples/demo.py
    python benchmarks/programs/step_clock.py --device software-gpu examples/demo.py
    python benchmarks/programs/step_clock.py --variant "" --variant sync-in-loop --rounds 3 program.py

A clock is put at the end of the body of the loops over `step`, or else of every innermost loop of the program (outside
of compiled functions), and into Keras' batches. A program whose repair is one call has no loop: it is called twice, and
the second time counts. `--variant WORDS` runs the program with these words as its arguments; variants take turns, each
in a process forked from one that has imported TensorFlow.

Each run prints `steps_s SECONDS STEPS UNDISTURBED CPU VARIANT`. UNDISTURBED is without the time in which the main
thread was ready to run while other processes had all processors; CPU is the process's own processor time.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import time
from typing import Any

ticks: list[int] = []
# The time, the processor time and the time spent waiting for a processor, at the first tick and at one of the last.
used: list[tuple[int, int, int]] = []
ends: list[int] = []
now = time.perf_counter_ns


def tick() -> None:
    """A step ended."""
    ticks.append(now())
    # Asking the system takes as long as some steps: now and then is enough.
    if not used or ticks[-1] - used[-1][0] > 20_000_000:
        used[1:] = [(ticks[-1], time.process_time_ns(), _delay_ns())]


def _delay_ns() -> int:
    """For how long the main thread was ready to run and had no processor; 0 where the system does not tell."""
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except OSError:
        return 0


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
        # Whether the program has a loop over `step`: then no other loop counts.
        self.named = False

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.named = any(isinstance(n, ast.For) and _over_step(n) for n in ast.walk(node))
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        # Only the functions that are the program's own flow: a compiled step has its loops inside the graph.
        return self.generic_visit(node) if node.name == "main" else node

    def visit_For(self, node: ast.For) -> Any:
        self.depth += 1
        inner = [n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.For)]
        if _over_step(node) if self.named else not inner:
            node.body.append(_call("__tick__"))
        else:
            self.generic_visit(node)
        self.depth -= 1
        return node if self.depth else [node, _call("__end_of_loop__")]


def _over_step(node: ast.For) -> bool:
    first = node.target.elts[0] if isinstance(node.target, ast.Tuple) else node.target
    return isinstance(first, ast.Name) and first.id == "step"


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
    parser.add_argument(
        "--variant", action="append", metavar="WORDS", help="arguments of the program; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("program")
    args, words = parser.parse_known_args()
    if args.device == "software-gpu":
        from stoker.doctor import software_gpu

        software_gpu.enable(memory="8GiB", profile=args.profile)
        now = software_gpu.now_ns
    for variant in (args.variant or [" ".join(words)]) * args.rounds:
        sys.argv = [args.program, *variant.split()]
        if args.variant is None:
            _say(args, "")
        elif _forked(args, variant):
            sys.exit(f"failed: {' '.join(sys.argv)}")


def _forked(args: argparse.Namespace, variant: str) -> int:
    """Run in a child: nothing of one variant is left for the next. Importing starts no threads of TensorFlow's."""
    import keras  # noqa: F401
    import tensorflow as tf  # noqa: F401

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        _say(args, variant)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - the child must not go on as its parent
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _say(args: argparse.Namespace, variant: str) -> None:
    seconds, steps = run(args.program, args.twice)
    cpu = delay = 0.0
    if len(used) == 2:
        wall, cpu, delay = (after - before for before, after in zip(*used, strict=True))
        cpu, delay = cpu * seconds / wall, delay * seconds / wall
    print(f"steps_s {seconds} {steps} {seconds - delay} {cpu} {variant}")


if __name__ == "__main__":
    main()
