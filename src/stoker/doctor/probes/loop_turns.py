"""The user's loops, and when a new turn of a loop begins, judged by where on the stack events happen.

An event (a compiled call, an optimizer's update, a read) comes from one instruction in each of the user's frames. If
the instruction is the same as at the last event, or an earlier one, a loop has begun a new turn. Loops are found in the
bytecode, so neither tracing nor the source is needed.
"""

from __future__ import annotations

import dis
import inspect
import itertools
import sys
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import NamedTuple

from stoker.doctor.attach.sites import KERAS_LOOP, OWN_ROOT, USER, SiteKey, Sites

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
# These instructions are not followed by the next instruction in the code.
_NEVER_GO_ON = frozenset(
    {
        "JUMP_FORWARD",
        "JUMP_ABSOLUTE",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
    }
)
# How many functions and frames are remembered. A program that keeps making new ones must not make Stoker grow.
_MAX_KEPT = 2000
# Keras' loops that train nothing. An eager op below them is part of their cost.
_INFERENCE = frozenset({"predict", "evaluate"})
# Functions of Keras that are a step or run steps.
_STEPS = ("fit", "train_step", "test_step", "train_on_batch", "test_on_batch")
# The function of Keras around every layer's `build`.
_BUILD = "build_wrapper"
_MAX_FRAMES = 12


@dataclass(frozen=True)
class UserLoop:
    """A loop in a function: its file, line and function, and its instructions."""

    file: str
    line: int
    function: str
    start: int
    end: int
    # Computed once, because it is needed several times a step.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = (self.file, self.line, self.function, self.start, self.end)
        object.__setattr__(self, "_hash", hash(place))

    def __hash__(self) -> int:
        return self._hash

    def __contains__(self, instruction: int) -> bool:
        return self.start <= instruction <= self.end


@dataclass
class _LastEvent:
    """The place of the last event, if it was in a loop of the innermost frame, and the loops around it."""

    # The frame's id, because frames must not be kept alive.
    frame: int
    code: CodeType
    caller: tuple[int, int]
    here: int
    innermost: UserLoop
    # What the next event in the innermost loop shows: a new turn of that loop, or the same turn.
    next_turn: list[tuple[UserLoop, bool]]
    same_turn: list[tuple[UserLoop, bool]]
    # By instruction: whether `innermost` is its innermost loop.
    inside: dict[int, bool]


class UserFrame(NamedTuple):
    """One of the user's frames on the stack: its line, and the loops of its function around that line."""

    site: SiteKey
    loops: tuple[UserLoop, ...]


def loops_of(code: CodeType) -> tuple[UserLoop, ...]:
    """Return the loops of a function, inner ones before those around them."""
    instructions = list(dis.get_instructions(code))
    jumps = [
        (one.argval, one.offset)
        for one in instructions
        if one.opcode in _JUMPS and isinstance(one.argval, int) and one.argval <= one.offset
    ]
    heads = _heads(instructions, jumps) if jumps else set()
    ranges: dict[int, int] = {}
    for target, offset in jumps:
        if target in heads:
            ranges[target] = max(ranges.get(target, 0), offset)
    lines = {start: line for start, _, line in code.co_lines() if line is not None}
    places = sorted(lines)
    found = []
    for start, end in _join(sorted(ranges.items())):
        line = next((lines[place] for place in reversed(places) if place <= start), code.co_firstlineno)
        found.append(UserLoop(code.co_filename, line, code.co_name, start, end))
    return tuple(sorted(found, key=lambda loop: loop.end - loop.start))


def _heads(instructions: list[dis.Instruction], jumps: list[tuple[int, int]]) -> set[int]:
    """Return the targets of backward jumps from which such a jump can be reached again.

    Other backward jumps are not loops. Leaving a `with` because of an exception may also jump back, to what comes after
    it, which only the exception leads to. Waiting for an awaited value jumps back to itself.
    """
    following = {one.offset: after.offset for one, after in itertools.pairwise(instructions)}
    by_offset = {one.offset: one for one in instructions}
    heads = set()
    for target in {target for target, _ in jumps}:
        ends = {
            offset
            for its, offset in jumps
            if its == target and by_offset[offset].opname != "JUMP_BACKWARD_NO_INTERRUPT"
        }
        seen, left = {target}, [target]
        while left and not ends & seen:
            one = by_offset[left.pop()]
            ways = [one.argval] if one.opcode in _JUMPS and isinstance(one.argval, int) else []
            if one.opname not in _NEVER_GO_ON and one.offset in following:
                ways.append(following[one.offset])
            new = [way for way in ways if way not in seen and way in by_offset]
            seen.update(new)
            left += new
        if ends & seen:
            heads.add(target)
    return heads


def _join(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that overlap without nesting: such ranges are two ways back to the top of one loop."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        last = next((i for i, (a, b) in enumerate(joined) if a <= start <= b < end), None)
        if last is None:
            joined.append((start, end))
        else:
            joined[last] = (joined[last][0], end)
    return joined


def _caller_of(frame: FrameType) -> tuple[int, int]:
    """Return the caller of a function and its instruction, because another call may get the same frame again."""
    caller = frame.f_back
    return (id(caller), caller.f_lasti) if caller is not None else (0, 0)


class LoopTurns:
    """Follows the loops of the user's functions from event to event."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._loops: dict[CodeType, tuple[UserLoop, ...]] = {}
        # By the id of a frame, which must not be kept alive: its code, the instruction of the last event, and whether a
        # generator ran inside it then.
        self._frames: dict[int, tuple[CodeType, int, bool]] = {}
        self._last: _LastEvent | None = None

    def list_loops_around(self, again: bool = True) -> list[tuple[UserLoop, bool]]:
        """Return the loops around the running line, innermost first, each with whether a new turn of the loop began.

        `again` says whether an event from the same instruction as the last event belongs to a new turn. One instruction
        may have several events, such as a print of three tensors.
        """
        frame: FrameType | None = sys._getframe(1)
        kinds, left = self._sites.kinds, _MAX_FRAMES
        while frame is not None and kinds.get(frame.f_code.co_filename, USER) != USER:
            frame = frame.f_back
        if frame is not None and self._last is not None:
            known = self._follow(self._last, frame, again)
            if known is not None:
                return known
        innermost = frame
        found: list[tuple[UserLoop, bool]] = []
        # Whether the user's frame inside this one was entered again. The innermost frame has none inside.
        fresh, inside = again, False
        while frame is not None and left:
            code = frame.f_code
            kind = kinds.get(code.co_filename)
            if kind is None:
                kind = self._sites.kind_of(code.co_filename)
            if kind == USER:
                fresh = self._look(frame, code, fresh, inside, found)
                inside = bool(code.co_flags & inspect.CO_GENERATOR)
                left -= 1
            frame = frame.f_back
        self._last = self._remember(innermost, found) if innermost is not None and found else None
        return found

    def _remember(self, frame: FrameType, found: list[tuple[UserLoop, bool]]) -> _LastEvent | None:
        """Return what the next event shows if it comes from the same innermost loop of the same frame."""
        code, here, innermost = frame.f_code, frame.f_lasti, found[0][0]
        if innermost not in self.loops(code):
            return None
        return _LastEvent(
            id(frame),
            code,
            _caller_of(frame),
            here,
            innermost,
            next_turn=[(loop, number == 0) for number, (loop, _) in enumerate(found)],
            same_turn=[(loop, False) for loop, _ in found],
            inside={here: True},
        )

    def _follow(self, last: _LastEvent, frame: FrameType, again: bool) -> list[tuple[UserLoop, bool]] | None:
        """Handle the usual case, in which only the innermost loop has moved on. Return None if that is not certain."""
        number, here = id(frame), frame.f_lasti
        if number != last.frame or frame.f_code is not last.code or _caller_of(frame) != last.caller:
            return None
        inside = last.inside.get(here)
        if inside is None:
            loop = next((loop for loop in self.loops(last.code) if here in loop), None)
            inside = last.inside[here] = loop == last.innermost
        if not inside:
            return None
        turned = here < last.here or (here == last.here and again)
        if here != last.here:
            last.here = here
            self._frames[number] = (last.code, here, False)
        return last.next_turn if turned else last.same_turn

    def stack(self, limit: int = _MAX_FRAMES) -> tuple[UserFrame, ...]:
        """Return the user's frames, innermost first.

        Return none for work that a loop does for itself (Stoker's, or `predict`), and none while a layer is built: its
        weights are drawn once, whatever needs them first.
        """
        found: list[UserFrame] = []
        frame: FrameType | None = sys._getframe(1)
        in_loop = False
        while frame is not None and len(found) < limit:
            code = frame.f_code
            kind = self._sites.kind_of(code.co_filename)
            if kind == KERAS_LOOP and not found:
                if code.co_name in _INFERENCE or (not in_loop and code.co_filename.startswith(OWN_ROOT)):
                    return ()
                # The user's line may have asked for eager steps. The rest of Keras' trainer works for any caller.
                in_loop = in_loop or code.co_name in _STEPS
            if kind != USER and code.co_name == _BUILD:
                return ()
            if kind == USER:
                loops = tuple(loop for loop in self.loops(code) if frame.f_lasti in loop)
                found.append(UserFrame((code.co_filename, frame.f_lineno, code.co_name), loops))
            frame = frame.f_back
        return tuple(found)

    def loops(self, code: CodeType) -> tuple[UserLoop, ...]:
        """Return the loops of a function, looked up only once."""
        known = self._loops.get(code)
        if known is None:
            if len(self._loops) >= _MAX_KEPT:
                self._loops.clear()
            known = self._loops[code] = loops_of(code)
        return known

    def _look(
        self, frame: FrameType, code: CodeType, again: bool, inside: bool, found: list[tuple[UserLoop, bool]]
    ) -> bool:
        """Look at one frame. `inside` says whether a generator runs inside it.

        Add the frame's loops to `found`, and return whether the frame was entered since the last event.
        """
        loops = self.loops(code)
        here, number = frame.f_lasti, id(frame)
        known = self._frames.get(number)
        if known is None and len(self._frames) >= _MAX_KEPT:
            self._frames.clear()
        self._frames[number] = (code, here, inside)
        if known is None or known[0] is not code:
            found += [(loop, True) for loop in loops if here in loop]
            return True
        before = known[1]
        # In `f(*(tf.constant(x) for x in row))`, one instruction exhausts the generator and calls the function.
        called = known[2] and not inside
        back = here < before or (here == before and again and not called)
        for loop in loops:
            if here not in loop:
                continue
            if before not in loop:
                found.append((loop, True))
                continue
            found.append((loop, back))
            # The inner loop has begun a new turn, which explains the event: the outer loops and the function go on.
            back = False
        return back
