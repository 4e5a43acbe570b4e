"""Reads of tensors in the loop."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, every_step, in_loop, worth
from stoker.doctor.probes.recorder import MAX_SITES
from stoker.doctor.probes.session import Measurements

# Beyond this a call is shown without its arguments.
_LONG_CALL = 60
_BY_LIBRARY = (
    "{} reads the tensor: call it every N steps, or after the loop. Where every step needs it, let it read one tensor "
    "with all it wants."
)


def find(m: Measurements) -> Iterator[Draft]:
    """`sync-in-loop`: at every step, or less often but at a cost."""
    for site, tally in m.tallies.get("sync", {}).items():
        dear = tally.count >= MIN_REPEATS and worth(m, tally.lost_ns)
        if not dear and not (in_loop(m, tally) and every_step(m, tally.count)):
            continue
        detail = dict(tally.detail)
        if m.device_kind == "CPU" and not m.is_async:
            detail["note"] = (
                "reads are cheap on a synchronous CPU; on an accelerator every one waits for the device"
            )
        if "through" in detail:
            detail["call"] = _as_written(site, detail["through"])
        yield Draft(
            "sync-in-loop",
            site,
            tally.count,
            tally.ns,
            tally.lost_ns,
            wait_ns=tally.wait_ns,
            copy_ns=tally.ns - tally.wait_ns,
            bytes=tally.bytes,
            remedy=_BY_LIBRARY.format(detail["call"]) if "call" in detail else None,
            detail=detail,
        )


@functools.lru_cache(maxsize=MAX_SITES)
def _as_written(site: SiteKey, library: str) -> str:
    """The call of the library's function as the line has it: `env.step(action)`; else the function's own name."""
    name = library.rsplit(".", 1)[-1]
    line = linecache.getline(site[0], site[1]).strip()
    try:
        tree = ast.parse(f"{line} pass" if line.endswith(":") else line)
    except SyntaxError:
        # A part of a statement of several lines.
        return f"{library}()"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if called == name:
                whole = ast.unparse(node)
                return whole if len(whole) <= _LONG_CALL else f"{ast.unparse(function)}(...)"
    return f"{library}()"
