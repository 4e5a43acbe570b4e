"""What a stall is, and the registry of all stalls.

    for stall in stalls().values(): ...     # ordered by code
    stalls()["sync-in-loop"].remedy

A stall is one module of `doctor/stalls/` that ends in `STALL = ...`. It holds everything about the stall: its words,
its static rule (a `check.rule.Rule`), its run-time detector (`find`) and its repair. Its cases are programs in
`doctor/stalls/cases/`. No list of the modules exists: this registry looks into the package.

A stall is named after the bad pattern, and is called `kind` in records. Codes are stable, by family: STK1xx syncs and
copies, STK2xx graphs, STK3xx input, STK4xx precision and devices, STK5xx training and inference practice, STK6xx jobs
of many workers, STK7xx memory.

Reading source must start quickly, so this module imports nothing of the run-time half.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.replay.repair import Repair
    from stoker.doctor.stalls.shared.draft import Draft
    from stoker.records import Finding, Record, WorkerRow

_PACKAGE = "stoker.doctor.stalls"
_CASES = Path(__file__).with_name("stalls") / "cases"
# Not a stall: a `# stoker: ignore` comment that suppresses nothing. It is selected and ignored by name like a stall.
UNUSED_KIND, UNUSED_CODE = "unused-allow", "STK001"
# Ends the lines of a case that the rule must report.
MARK = "  #!"


@dataclass(frozen=True)
class Case:
    """A program, the lines that a rule must report in it, and the program as the rule's fix leaves it."""

    code: str
    lines: tuple[int, ...] = ()
    fixed: str | None = None


class Stall:
    """One named pattern that loses time."""

    slug: ClassVar[str]
    code: ClassVar[str]
    # The account its cost usually shows up on.
    account: ClassVar[str]
    title: ClassVar[str]
    # One sentence that says what to do.
    remedy: ClassVar[str]
    # Why it costs.
    why: ClassVar[str]
    # Whether the stall spoils what the model learns, not how fast it runs. Then it has no price.
    spoils_results: ClassVar[bool] = False
    # Whether a run prices the stall by the memory that it holds, in bytes, and not by time.
    holds_memory: ClassVar[bool] = False
    # Whether it names the call that costs. A stall with `is_part_of_call` is then not reported at the same line.
    explains_call: ClassVar[bool] = False
    is_part_of_call: ClassVar[bool] = False
    # What the replay removes; None for a stall without a modelled price.
    repair: ClassVar[Repair | None] = None

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Yield where a run shows this stall; nothing for a stall without a run-time detector."""
        return iter(())

    def find_in_job(self, workers: Mapping[int, Record], rows: Sequence[WorkerRow]) -> Iterator[Finding]:
        """Yield where the records of a job's workers, side by side, show this stall."""
        return iter(())

    def finding(self, *, remedy: str | None = None, **facts: Any) -> Finding:
        """Return a finding of this stall, with its words and these facts."""
        from stoker.records import Finding

        return Finding(
            kind=self.slug, code=self.code, title=self.title, remedy=remedy or self.remedy, **facts
        )

    @cached_property
    def bad(self) -> tuple[Case, ...]:
        """Programs that have the stall; the documentation shows the first."""
        return tuple(_read_bad(path) for path in self._case_files("bad"))

    @cached_property
    def good(self) -> tuple[Case, ...]:
        """Programs without the stall; the documentation shows the first."""
        return tuple(Case(path.read_text(encoding="utf-8")) for path in self._case_files("good"))

    def _case_files(self, sort: str) -> list[Path]:
        folder = _CASES / self.slug.replace("-", "_")
        numbered = {path.stem.removeprefix(f"{sort}_"): path for path in folder.glob(f"{sort}_*.py")}
        return [numbered[number] for number in sorted(filter(str.isdigit, numbered), key=int)]


def _read_bad(path: Path) -> Case:
    lines = path.read_text(encoding="utf-8").split("\n")
    marked = tuple(number for number, line in enumerate(lines, 1) if line.endswith(MARK))
    after = path.with_name(f"{path.stem}_fixed.py")
    fixed = after.read_text(encoding="utf-8") if after.exists() else None
    return Case("\n".join(line.removesuffix(MARK) for line in lines), marked, fixed)


@functools.cache
def stalls() -> Mapping[str, Stall]:
    """Return every stall by its slug, ordered by code."""
    found = [_load(name) for name in _modules()]
    return {stall.slug: stall for stall in sorted(found, key=lambda stall: stall.code)}


def find_stall(slug: str) -> Stall | None:
    """Return a stall without loading the others; None if this version has no such stall."""
    name = slug.replace("-", "_")
    return _load(name) if name in _modules() else None


@functools.cache
def _modules() -> frozenset[str]:
    package = importlib.import_module(_PACKAGE)
    return frozenset(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)


def _load(name: str) -> Stall:
    stall: Stall = importlib.import_module(f"{_PACKAGE}.{name}").STALL
    return stall


def is_known(name: str) -> bool:
    """Return whether this is a slug, a code, the beginning of a code (`STK3` is the input family), or `ALL`."""
    if name in ("ALL", UNUSED_KIND) or name in stalls():
        return True
    codes = [UNUSED_CODE, *(stall.code for stall in stalls().values())]
    return bool(name) and any(code.startswith(name) for code in codes)
