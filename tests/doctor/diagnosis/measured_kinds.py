"""The kinds a run can find: those the detectors name."""

from __future__ import annotations

import ast
from pathlib import Path

import stoker.doctor.diagnosis
from stoker.doctor.stall import stalls

_DETECTORS = ("syncs", "copies", "eager", "graphs", "inputs", "keras", "checkpoints")


def _named_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    } & set(stalls())


# What spoils the training without taking time has no price.
UNPRICED = {"shuffle-after-batch"}
MEASURED = set().union(
    *(_named_in(Path(stoker.doctor.diagnosis.__file__).with_name(f"{name}.py")) for name in _DETECTORS)
)
