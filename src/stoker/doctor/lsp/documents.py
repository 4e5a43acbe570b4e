"""The open documents of an editor and their findings. After a change, every document that depends on it is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stoker.config import Config, load
from stoker.doctor.check.checker import FileResult, check_overlaid, combine
from stoker.doctor.check.rule import Problem
from stoker.doctor.check.source.files import project_root
from stoker.doctor.report.line_prices import PriceList, PriceOfLine, read_prices
from stoker.doctor.stall import is_known
from stoker.errors import UsageError
from stoker.files import RUNS


@dataclass(frozen=True)
class PricedProblem:
    """A problem, and its cost according to a saved run."""

    problem: Problem
    price: PriceOfLine | None = None


@dataclass(frozen=True)
class CheckedText:
    """One document as it was last checked. While its text does not parse, the earlier findings stay."""

    text: str
    problems: tuple[PricedProblem, ...]
    parses: bool = True


class OpenDocuments:
    """The results of the open documents. Only one thread at a time may call `check`."""

    def __init__(self) -> None:
        self._results: dict[str, FileResult] = {}
        self._checked: dict[str, CheckedText] = {}
        # Errors in the configurations of projects, by the projects' roots.
        self.config_errors: dict[Path, str] = {}

    def find(self, path: str) -> CheckedText | None:
        """Return the result of the latest check of a document."""
        return self._checked.get(path)

    def check(self, texts: Mapping[str, str]) -> dict[str, CheckedText]:
        """Check the open documents, given by path, that have changed or depend on one that has. Return all results."""
        changed = {path for path, text in texts.items() if not self._is_current(path, text)}
        changed |= self._results.keys() - texts.keys()
        self._results = {path: result for path, result in self._results.items() if path in texts}
        affected = [path for path in texts if path in changed or self._looks_into(path, changed)]
        overlay = {path: text.encode("utf-8", "replace") for path, text in texts.items()}
        fresh = {result.path: result for result in check_overlaid(affected, overlay)}
        broken = {path for path, result in fresh.items() if result.error is not None}
        self._results.update({path: result for path, result in fresh.items() if path not in broken})
        self._checked = {path: self._collect(path, text, path in broken) for path, text in texts.items()}
        return dict(self._checked)

    def _is_current(self, path: str, text: str) -> bool:
        known = self._checked.get(path)
        return known is not None and known.text == text and known.parses

    def _looks_into(self, path: str, changed: set[str]) -> bool:
        result = self._results.get(path)
        return result is not None and any(other in changed for other in result.consulted)

    def _collect(self, path: str, text: str, broken: bool) -> CheckedText:
        if broken:
            known = self._checked.get(path)
            return CheckedText(text, known.problems if known is not None else (), parses=False)
        config = self._configure(path)
        if config.excludes(path):
            return CheckedText(text, ())
        prices = read_prices(_run_folders(path))
        found = (p for p in combine(list(self._results.values())).problems if p.file == path)
        kept = (p for p in found if config.reports(p.kind, p.code, path))
        return CheckedText(text, tuple(_price(problem, prices) for problem in kept))

    def _configure(self, path: str) -> Config:
        root = project_root(os.path.dirname(path))
        try:
            config = load(root, is_known)
        except UsageError as error:
            self.config_errors[root] = str(error)
            return Config(root=root)
        self.config_errors.pop(root, None)
        return config


def _price(problem: Problem, prices: PriceList) -> PricedProblem:
    price = prices.find(problem)
    return PricedProblem(problem if price is None else price.attach_to(problem), price)


def _run_folders(path: str) -> list[Path]:
    """Return where a program's runs may be: in its directory or one above it, up to the top of the project."""
    directory = Path(path).parent
    root = project_root(str(directory))
    above = [one for one in (directory, *directory.parents) if one == root or root in one.parents]
    # The nearest comes last, so that its runs take precedence.
    return [one / RUNS for one in reversed(above)]
