"""Find the files of a project that imports refer to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from stoker.doctor.check.source.files import STDIN, load
from stoker.doctor.check.source.module import SourceError, SourceModule
from stoker.doctor.check.source.names import LIBRARY_ROOTS

# A directory with one of these is the top of a project; imports are not searched above it.
_TOPS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_LEVELS = 6
# Files more than this many imports away are not followed, since they rarely matter.
_FAR = 3
# This many files stay in memory, enough for the packages that most files of a large project import.
_KEPT = 256
# Directories of installed packages, which are not the project's own.
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\(?([\w, \t*]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w.]+)", re.MULTILINE)
_LOOP = re.compile(r"\b(?:for|while)\b|import \*")
_SKIPPED = LIBRARY_ROOTS | frozenset(sys.stdlib_module_names)


class Project:
    """Finds and parses the project's own modules.

    Args:
        load_file: reads one file; pass another function if some files' contents differ from those on disk.
    """

    def __init__(self, load_file: Callable[[str], SourceModule] = load) -> None:
        self._load_file = load_file
        # The files read lately, the latest last. Their trees take most of the memory of a check.
        self._read: dict[str, SourceModule | SourceError] = {}
        self._modules: dict[str, SourceModule | None] = {}
        self._roots: dict[str, list[Path]] = {}
        # The paths that an import may refer to, by the importer's directory, the name and the level.
        self._candidates: dict[tuple[str, str, int], list[str]] = {}
        self._exists: dict[str, bool] = {}
        # Files on whose presence or content the analysis has depended since `start`.
        self._consulted: set[str] = set()

    def load(self, path: str) -> SourceModule:
        """Read a file, or take it from memory. Nothing in it is interpreted yet.

        Raises:
            SourceError: the file cannot be read or decoded.
        """
        found = self._read.pop(path, None)
        if found is None:
            try:
                found = self._load_file(path)
            except SourceError as error:
                found = error
        self._read[path] = found
        if len(self._read) > _KEPT:
            del self._read[next(iter(self._read))]
        if isinstance(found, SourceError):
            raise found
        return found.copy_fresh()

    def start(self, module: SourceModule) -> None:
        """Begin the analysis of one file, and forget what earlier analyses learned about other files.

        Otherwise a file's findings would depend on the order in which files are checked.
        """
        self._consulted = set()
        self._modules = {module.path: module}

    def forget(self) -> None:
        """Forget the latest analysis."""
        self._modules = {}

    @property
    def consulted(self) -> frozenset[str]:
        """The paths looked at since `start`, whether they existed or not."""
        return frozenset(self._consulted)

    def find(self, importer: SourceModule, dotted: str, level: int = 0) -> SourceModule | None:
        """Return the module to which `dotted` refers in `importer`, or None if it is not one of the project's files."""
        if importer.distance >= _FAR or importer.path == STDIN:
            return None
        if level == 0 and (not dotted or dotted.split(".", 1)[0] in _SKIPPED):
            return None
        key = (os.path.dirname(importer.path), dotted, level)
        candidates = self._candidates.get(key)
        if candidates is None:
            candidates = self._candidates[key] = list(self._find_candidates(importer.path, dotted, level))
        for path in candidates:
            if self._is_file(path):
                return self._load(path, importer.distance + 1)
        return None

    def _find_candidates(self, path: str, dotted: str, level: int) -> Iterator[str]:
        """Yield the files that an import in this file may refer to, the likeliest first."""
        for directory in self._search(path, level):
            base = directory.joinpath(*dotted.split(".")) if dotted else directory
            if dotted:
                yield str(base.with_suffix(".py"))
            yield str(base / "__init__.py")

    def lends_tensors(self, module: SourceModule, depth: int = 2) -> bool:
        """Return whether a file with loops imports a project file that uses TensorFlow, whose steps it may drive.

        A `tf` imported from that file, by name or by a star, counts as an import of TensorFlow.
        """
        if not _LOOP.search(module.text):
            return False
        lent = False
        for dots, dotted, names in _FROM.findall(module.text):
            wanted = [words[0] for name in names.split(",") if (words := name.split())]
            inside = [f"{dotted}.{name}" if dotted else name for name in wanted if name != "*"]
            if any(self._uses(module, one, len(dots), depth) for one in (dotted, *inside) if one or dots):
                lent = True
                module.lent_tensors |= not {"*", "tf", "keras"}.isdisjoint(wanted)
        return lent or any(self._uses(module, dotted, 0, depth) for dotted in _IMPORT.findall(module.text))

    def _uses(self, importer: SourceModule, dotted: str, level: int, depth: int) -> bool:
        if not level and dotted.split(".", 1)[0] in _SKIPPED:
            return False
        found = self.find(importer, dotted, level)
        if found is None:
            return False
        return found.uses_tensors or (depth > 1 and self.lends_tensors(found, depth - 1))

    def _search(self, path: str, level: int) -> list[Path]:
        here = Path(path).parent
        if level:
            for _ in range(level - 1):
                here = here.parent
            return [here]
        return self._roots_of(here)

    def _roots_of(self, directory: Path) -> list[Path]:
        known = self._roots.get(str(directory))
        if known is None:
            known = []
            place = directory
            for _ in range(_LEVELS):
                if place.name in _INSTALLED:
                    break
                known.append(place)
                resolved = place.resolve()
                if resolved.parent == resolved or any((resolved / top).exists() for top in _TOPS):
                    break
                place = place.parent if place.name not in ("", "..") else place / ".."
            self._roots[str(directory)] = known
        return known

    def _is_file(self, path: str) -> bool:
        self._consulted.add(path)
        known = self._exists.get(path)
        if known is None:
            known = self._exists[path] = Path(path).is_file()
        return known

    def _load(self, path: str, distance: int) -> SourceModule | None:
        if path not in self._modules:
            try:
                module = self._modules[path] = self.load(path)
                module.distance = distance
            except SourceError:
                # The error is reported when that file itself is checked; here the module is just unknown.
                self._modules[path] = None
        return self._modules[path]
