"""A plan: how a training run executes, and why. Decided by `decide`, or set by the user with `plan=`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeAlias

from stoker.errors import ArgumentError

FEEDS = ("resident", "streamed")
JITS = ("loop", "step", "update", "none")
# How the reasons begin that say what XLA would gain.
_ABOUT_XLA = "XLA is "
_SWITCHES = {"fused": ("fused", True), "unfused": ("fused", False), "tuned": ("tuned", True)}


@dataclass(frozen=True)
class Plan:
    """A plan for a run. Stoker decides each field that is None.

    Attributes:
        feed: "resident" (the data lies on the device) or "streamed" (through tf.data, with prefetch).
        steps_per_call: how many steps one compiled call runs.
        jit: XLA over the whole "loop", over the "step", over the optimizer's "update" of large variables, or "none".
        fused: whether TensorFlow's own kernels do batch normalisation of images and Adam's update.
        tuned: whether the tf.data pipeline goes through `stoker.tune` first.
        parts: into how many parts a batch is cut, to need less memory; 1 for the whole batch at once.
        reasons: one sentence for each decision.
        figures: the measurements: microseconds per step of each candidate, seconds spent deciding, batches per
            second of the input before and after tuning, and bytes at the peak of a step.
    """

    feed: str | None = None
    steps_per_call: int | None = None
    jit: str | None = None
    fused: bool | None = None
    tuned: bool | None = None
    parts: int | None = None
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.feed is not None and self.feed not in FEEDS:
            raise ArgumentError(f"plan: feed={self.feed!r} is not one of {_quote(FEEDS)}")
        if self.jit is not None and self.jit not in JITS:
            raise ArgumentError(f"plan: jit={self.jit!r} is not one of {_quote(JITS)}")
        for name in ("steps_per_call", "parts"):
            count = getattr(self, name)
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
                raise ArgumentError(f"plan: {name}={count!r} must be a whole number of at least 1")

    def because(self, *reasons: str, **decided: Any) -> Plan:
        """Return the plan with fields decided, and the reasons."""
        return replace(self, reasons=self.reasons + reasons, **decided)

    def line(self) -> str:
        """Return the plan in one line for the terminal."""
        how = {
            "loop": "XLA over the whole loop",
            "step": "XLA over the step",
            "update": "XLA over the update",
            "none": "no XLA",
        }
        count = self.steps_per_call
        calls = "one call about every 0.3 s" if count is None else f"{count} step{'s' * (count != 1)} a call"
        cut = f"batches in {self.parts} parts, " if (self.parts or 1) > 1 else ""
        feed = {"resident": "data kept on the device", "streamed": "data streamed"}.get(
            self.feed or "", "feed undecided"
        )
        # What concerns XLA follows its name at once, and so need not repeat it.
        ordered = sorted(self.reasons, key=lambda reason: not reason.startswith(_ABOUT_XLA))
        why = "; ".join(reason.removeprefix(_ABOUT_XLA) for reason in ordered)
        return f"{feed}, {calls}, {cut}{how.get(self.jit or '', 'XLA undecided')}{f' ({why})' if why else ''}"

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "reasons": list(self.reasons), "figures": dict(self.figures)}


PlanLike: TypeAlias = Plan | str | Mapping[str, Any] | None


def parse(pinned: PlanLike) -> Plan:
    """Turn the value of `plan=` into a plan.

    Short strings name fields by their values: "resident", "streamed", "loop", "step", "update", "none", "fused",
    "unfused", "tuned", a number of steps per call, or several of them with commas: "resident, loop, 64".
    """
    if pinned is None:
        return Plan()
    if isinstance(pinned, Plan):
        return pinned
    if isinstance(pinned, str):
        return Plan(**_parse_words(pinned))
    if isinstance(pinned, Mapping):
        known = [entry.name for entry in fields(Plan)]
        for name in pinned:
            if name not in known:
                raise ArgumentError(
                    f"plan: {name!r} is not a field of a plan; the fields are {_quote(known)}"
                )
        return Plan(**{**pinned, "reasons": tuple(pinned.get("reasons", ()))})
    raise ArgumentError(
        f"plan must be a stoker.Plan, a string such as 'resident, loop' or a dict, not {type(pinned).__name__}"
    )


def _parse_words(text: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    value: object
    for word in (part.strip() for part in text.split(",")):
        if word in FEEDS:
            name, value = "feed", word
        elif word in JITS:
            name, value = "jit", word
        elif word.isdecimal():
            name, value = "steps_per_call", int(word)
        elif word in _SWITCHES:
            name, value = _SWITCHES[word]
        else:
            raise ArgumentError(
                f"plan: {word!r} is neither a feed ({_quote(FEEDS)}), nor a way to compile ({_quote(JITS)}), "
                f"nor a number of steps per call, nor one of {_quote(_SWITCHES)}"
            )
        if name in chosen:
            raise ArgumentError(f"plan: {text!r} gives {name} twice")
        chosen[name] = value
    return chosen


def _quote(words: Iterable[str]) -> str:
    return ", ".join(repr(word) for word in words)
