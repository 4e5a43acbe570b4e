"""`[tool.stoker]` in pyproject.toml and the command line's flags, as one frozen `Config`."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.errors import UsageError

_KEYS = frozenset(
    {
        "select",
        "ignore",
        "per-file-ignores",
        "fail-on",
        "exclude",
        "device-profiles",
        "store",
        "keep-compilations",
    }
)
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True)
class Config:
    """The kinds of stalls to report, where, and which of them fail a check; and the user's own device profiles."""

    root: Path = Path()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())
    fail_on: str = "error"
    # By name, as written: the software GPU checks a profile when it is used.
    device_profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The URL of the store, or "off"; "" for the default.
    store: str = ""
    # Whether XLA's compilations are kept for later processes.
    keep_compilations: bool = True

    def reports(self, kind: str, code: str, file: str) -> bool:
        """Return whether a kind is reported in a file."""
        if self.select and not _names_stall(self.select, kind, code):
            return False
        if _names_stall(self.ignore, kind, code):
            return False
        return not any(
            _names_stall(names, kind, code)
            for pattern, names in self.per_file_ignores
            if self._matches(file, pattern)
        )

    def excludes(self, file: str) -> bool:
        """Return whether a file is left out."""
        return any(self._matches(file, pattern) for pattern in self.exclude)

    def fails(self, severity: str) -> bool:
        """Return whether a problem of this severity makes the check fail."""
        return severity in SEVERITIES and SEVERITIES.index(severity) >= SEVERITIES.index(self.fail_on)

    def _matches(self, file: str, pattern: str) -> bool:
        absolute = os.path.abspath(file)
        relative = os.path.relpath(absolute, self.root.resolve())
        names = (relative, os.path.basename(file))
        if any(fnmatch.fnmatch(name, pattern) for name in names):
            return True
        return relative.startswith(pattern.rstrip("/*") + os.sep)


def _names_stall(names: Sequence[str], kind: str, code: str) -> bool:
    """Return whether the names include a stall: by slug, code or start of a code (`STK3` is the whole input family)."""
    return any(name == kind or code.startswith(name) or name == "ALL" for name in names)


def load(root: Path, is_known: Callable[[str], bool] | None = None) -> Config:
    """Return the project's configuration, or the defaults if it has none.

    `is_known` says whether a name in `select`, `ignore` or `per-file-ignores` means a kind. Commands that report no
    kinds leave it out, so the names are not checked.

    Raises:
        UsageError: pyproject.toml is damaged, or a setting in the section makes no sense.
    """
    path = root / "pyproject.toml"
    if not path.is_file() or "tool.stoker" not in path.read_text(encoding="utf-8", errors="replace"):
        return Config(root=root)
    section = _section(path)
    unknown = sorted(set(section) - _KEYS)
    if unknown:
        raise UsageError(f"{path}: [tool.stoker] has no {unknown[0]!r}; it knows {', '.join(sorted(_KEYS))}")
    per_file = section.get("per-file-ignores", {})
    if not isinstance(per_file, Mapping):
        raise UsageError(f"{path}: per-file-ignores must be a table of pattern = [kinds]")
    return Config(
        root=root,
        select=names(section.get("select", ()), f"{path}: select", is_known),
        ignore=names(section.get("ignore", ()), f"{path}: ignore", is_known),
        exclude=tuple(_strings(section.get("exclude", ()), f"{path}: exclude")),
        per_file_ignores=tuple(
            (p, names(v, f"{path}: per-file-ignores", is_known)) for p, v in per_file.items()
        ),
        fail_on=severity(section.get("fail-on", "error"), f"{path}: fail-on"),
        device_profiles=_tables(section.get("device-profiles", {}), f"{path}: device-profiles"),
        store=_text(section.get("store", ""), f"{path}: store"),
        keep_compilations=_flag(section.get("keep-compilations", True), f"{path}: keep-compilations"),
    )


def _section(path: Path) -> Mapping[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        with path.open("rb") as file:
            section = tomllib.load(file).get("tool", {}).get("stoker", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if not isinstance(section, Mapping):
        raise UsageError(f"{path}: [tool.stoker] must be a table")
    return section


def _tables(value: object, where: str) -> Mapping[str, Mapping[str, Any]]:
    if isinstance(value, Mapping) and all(isinstance(table, Mapping) for table in value.values()):
        return value
    raise UsageError(f"{where} must be tables: [tool.stoker.device-profiles.NAME]")


def _text(value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    raise UsageError(f"{where} must be a string, not {value!r}")


def _flag(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise UsageError(f"{where} must be true or false, not {value!r}")


def _strings(value: object, where: str) -> list[str]:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return list(value)
    raise UsageError(f"{where} must be a list of strings")


def names(value: object, where: str, is_known: Callable[[str], bool] | None) -> tuple[str, ...]:
    """Return kinds, codes or families, checked by `is_known`.

    Raises:
        UsageError: one of them is unknown.
    """
    given = _strings(value, where)
    for name in given:
        if is_known is not None and not is_known(name):
            raise UsageError(f"{where}: no kind or code {name!r}; `stoker explain --list` lists all")
    return tuple(given)


def severity(value: object, where: str) -> str:
    """Check a severity, and return it.

    Raises:
        UsageError: there is no such severity.
    """
    if value not in SEVERITIES:
        raise UsageError(f"{where} must be one of {', '.join(SEVERITIES)}, not {value!r}")
    return str(value)
