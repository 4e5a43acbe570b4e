"""The layers of the package: a module imports only lower ranks or its own package."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support import ROOT

SRC = ROOT / "src" / "stoker"

# Lowest first. A package or module stands for everything below it.
RANKS: tuple[frozenset[str], ...] = (
    frozenset({"records", "kinds", "errors", "clock", "version", "files", "units", "loopback", "redaction"}),
    frozenset({"periodic", "signing"}),
    frozenset({"config", "source", "software_gpu"}),
    frozenset({"attach", "check"}),
    frozenset({"rules", "probes"}),
    frozenset({"store", "data"}),
    frozenset({"execution", "tuning"}),
    frozenset({"inference"}),
    frozenset({"diagnosis"}),
    frozenset({"replay"}),
    frozenset({"measure"}),
    frozenset({"report", "fix", "guards"}),
    frozenset({"train"}),
    frozenset({"distributed", "serve"}),
    frozenset({"recipes", "web"}),
    frozenset({"pytest_plugin", "watch", "log", "notebook"}),
    frozenset({"commands"}),
    # The package's own front doors may reach everything.
    frozenset({"__init__", "__main__", "bootstrap"}),
)


# The rooms of a package that has several, lowest first.
ROOMS: dict[str, tuple[frozenset[str], ...]] = {
    "train": (
        frozenset({"__init__", "checks", "first_look", "prepared_data", "tracebacks", "workers"}),
        frozenset({"variables"}),
        frozenset({"update"}),
        frozenset({"program"}),
        frozenset({"planning"}),
        frozenset({"checkpoint"}),
        frozenset({"loop"}),
        frozenset({"custom", "request"}),
        frozenset({"servers"}),
        frozenset({"evaluate", "fit", "trainer"}),
    ),
}


def rank_of(name: str, ranks: tuple[frozenset[str], ...] = RANKS) -> int:
    for rank, names in enumerate(ranks):
        if name in names:
            return rank
    raise AssertionError(f"src/stoker/{name} has no rank: add it to RANKS and to ARCHITECTURE.md")


def part(path: Path) -> str:
    relative = path.relative_to(SRC)
    return relative.parts[0].removesuffix(".py")


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """What is imported of Stoker when the module is, without the `stoker.`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "stoker" else [f"stoker.{a.name}" for a in node.names]
            # `from stoker.train import checks` imports a module, too.
            names += [f"{node.module}.{a.name}" for a in node.names]
        found += [(node.lineno, n.removeprefix("stoker.")) for n in names if n.startswith("stoker.")]  # type: ignore[attr-defined]
    return found


def imported_parts(path: Path) -> list[tuple[int, str]]:
    return [(line, name.split(".")[0]) for line, name in imported_modules(path)]


def upward_imports() -> list[str]:
    wrong = []
    for path in sorted(SRC.rglob("*.py")):
        own = part(path)
        for line, name in imported_parts(path):
            if name != own and rank_of(name) >= rank_of(own):
                wrong.append(f"{path.relative_to(SRC)}:{line} imports {name}")
    return wrong


def test_no_module_imports_its_own_rank_or_above() -> None:
    assert upward_imports() == []


def rooms_entered_upward(package: str) -> list[str]:
    rooms = ROOMS[package]
    wrong = []
    for path in sorted((SRC / package).rglob("*.py")):
        own = path.relative_to(SRC / package).parts[0].removesuffix(".py")
        for line, name in imported_modules(path):
            of, _, rest = name.partition(".")
            room = rest.split(".")[0]
            known = any(room in names for names in rooms)
            if of == package and known and room != own and rank_of(room, rooms) >= rank_of(own, rooms):
                wrong.append(f"{path.relative_to(SRC)}:{line} imports {package}.{room}")
    return wrong


def test_no_room_imports_its_own_rank_or_above() -> None:
    assert [line for package in ROOMS for line in rooms_entered_upward(package)] == []


def test_every_room_has_a_rank() -> None:
    for package, rooms in ROOMS.items():
        for path in (SRC / package).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").exists():
                rank_of(path.stem, rooms)


def test_every_part_has_a_rank() -> None:
    for path in SRC.rglob("*.py"):
        rank_of(part(path))
