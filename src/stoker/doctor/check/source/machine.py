"""An abstract interpreter: it goes through a program knowing only the types of values, and emits facts.

It follows calls into the program's own functions. It goes through each loop twice: once quietly, to see what
the loop does, and once with that knowledge. It never executes the program's code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stoker.doctor.check.source import calls, expressions, statements
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import At, Call, Fact, SideEffect, TapeStep
from stoker.doctor.check.source.frames import CallFrame, LoopState
from stoker.doctor.check.source.functions import CallSummary
from stoker.doctor.check.source.module import ClassInfo, FunctionNode, SourceModule
from stoker.doctor.check.source.project import Project
from stoker.doctor.check.source.values import UNKNOWN, Func, Value

# After this many steps, a file is not followed any deeper: time matters more than the last finding in ten
# thousand generated lines.
_BUDGET = 150_000


class Machine:
    """The state of one analysis: the frame, the loops around, the facts so far."""

    def __init__(self, project: Project, main: SourceModule) -> None:
        self.project = project
        # The file being checked. Other files are interpreted only as far as it calls into them.
        self.main = main
        self.facts: list[Fact] = []
        self.muted = 0
        self.tapes = 0
        # The number of open forward passes of models.
        self.forwards = 0
        # The number of open rare branches in the innermost loop.
        self.rare = 0
        # The number of open branches that run only the first time, to set something up.
        self.initialising = 0
        self.depth = 0
        self.budget = _BUDGET
        self.loops: list[LoopState] = []
        # The effects of the function being followed: canonical names of its calls, and markers such as "+steps".
        self.effects: set[str] = set()
        # Tapes whose gradients have not been applied yet, each with the loop it ran in.
        self.pending: list[tuple[LoopState | None, TapeStep]] = []
        self.memo: dict[object, CallSummary] = {}
        self.active: set[object] = set()
        # Functions interpreted so far, and the latest value of each function seen.
        self.visited: set[ast.AST] = set()
        self.functions: dict[FunctionNode | ast.Lambda, Func] = {}
        self.classes: dict[ast.AST, ClassInfo] = {}
        self.frame = CallFrame(main, main.scope)

    def value(self, node: ast.expr) -> Value:
        """Evaluate an expression."""
        handler = expressions.HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else UNKNOWN

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Run statements. Return whether control certainly leaves before their end."""
        return statements.run_block(self, body)

    def call(self, function: Value, node: ast.Call, arguments: Arguments) -> Value:
        """Call any value."""
        return calls.call(self, function, node, arguments)

    def at(self, node: ast.AST) -> At:
        """Return this place, with how it runs at the moment."""
        frame = self.frame
        return At(
            frame.module,
            node,
            frame.hot,
            frame.repeated,
            frame.graph,
            frame.function,
            frame.presumed,
            frame.loops[-1] if frame.loops else None,
            frame.mapped,
        )

    def emit(self, fact: Fact) -> None:
        """Record a fact, unless this is a quiet pass."""
        if not self.muted:
            self.facts.append(fact)

    def emit_call(
        self,
        name: str,
        node: ast.Call,
        arguments: Arguments,
        receiver: Value = UNKNOWN,
        *,
        loop_fits: bool = False,
    ) -> None:
        """Record a call of a library function or of a library object's method."""
        given = arguments.by_position, arguments.by_name
        self.emit(Call(self.at(node), name, node, receiver, *given, loop_fits))

    def note(self, effect: str) -> None:
        """Add an effect to those of the function being followed."""
        self.effects.add(effect)

    def side_effect(self, node: ast.AST, how: str) -> None:
        """Record a Python side effect that a graph has only while it is traced.

        Code that sets something up the first time is exempt: it is meant to run only while tracing.
        """
        traced = self.frame.traced
        if traced is not None and not self.initialising:
            self.emit(SideEffect(self.at(node), how, traced))

    def work(self, *, strong: bool) -> None:
        """Note that the program computes on the device here."""
        self.effects.add("+strong" if strong else "+weak")
        if self.loops:
            loop = self.loops[-1]
            loop.strong |= strong
            loop.often |= strong and not self.rare
            loop.weak |= not strong

    def steps_inside(self) -> None:
        """Note a call that takes many steps: the loop around it is then an epoch loop."""
        self.effects.add("+steps")
        if self.loops:
            self.loops[-1].inner_steps |= not self.rare

    def builds(self, *, model: bool) -> None:
        """Note that the program makes a model or an optimizer here."""
        self.effects.add("+builds_model" if model else "+builds")
        for loop in self.loops:
            loop.builds = True
            loop.builds_model |= model

    def tape(self, node: ast.AST) -> None:
        """Note that a gradient tape is recorded here."""
        self.pending.append((self.loops[-1] if self.loops else None, TapeStep(self.at(node))))

    def apply_gradients(self) -> None:
        """Note that gradients are applied: the tapes of this iteration, or of one around it, belong to a train step."""
        if self.loops:
            self.loops[-1].trains = True
        open_loops: list[LoopState | None] = [*self.loops] if self.loops else [None]
        for loop, step in self.pending:
            if loop in open_loops:
                self.emit(step)
        self.pending = [item for item in self.pending if item[0] not in open_loops]

    @property
    def within_step(self) -> bool:
        """Whether the current code is a part of one step: inside a tape, a forward pass or a graph."""
        return self.tapes > 0 or self.forwards > 0 or self.frame.graph

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Run a model's forward pass."""
        self.forwards += 1
        try:
            yield
        finally:
            self.forwards -= 1

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Run without emitting facts."""
        pending = list(self.pending)
        self.muted += 1
        try:
            yield
        finally:
            self.muted -= 1
            self.pending = pending

    @contextmanager
    def running(self, *, hot: bool, repeated: bool, graph: bool | None = None) -> Iterator[None]:
        """Run code of the same function under other circumstances."""
        frame = self.frame
        before = (frame.hot, frame.repeated, frame.graph)
        frame.hot, frame.repeated = hot, repeated
        frame.graph = frame.graph if graph is None else graph
        try:
            yield
        finally:
            frame.hot, frame.repeated, frame.graph = before

    @contextmanager
    def inside(self, frame: CallFrame) -> Iterator[None]:
        """Run code of another function."""
        before, self.frame = self.frame, frame
        self.depth += 1
        try:
            yield
        finally:
            self.frame = before
            self.depth -= 1

    def spend(self) -> bool:
        """Take one step from the budget. Return whether any is left."""
        self.budget -= 1
        return self.budget > 0
