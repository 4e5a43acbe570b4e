"""Check many files in parallel, reuse the results of unchanged files, and combine findings across files."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields, replace
from multiprocessing import get_context
from typing import Any

from stoker.doctor.check.cache import Cache
from stoker.doctor.check.registry import all_rules, check
from stoker.doctor.check.rule import Edit, Fix, Problem
from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.comments import Allow, allows
from stoker.doctor.check.source.files import STDIN, load
from stoker.doctor.check.source.module import SourceError, SourceModule
from stoker.doctor.check.source.project import Project
from stoker.doctor.stall import UNUSED_CODE, UNUSED_KIND, is_known, stalls
from stoker.errors import suggest

# Fewer files than this are checked before a second process would have started.
_PARALLEL = 24
# Memory that the analyses leave behind is freed each time this many files have been checked.
_COLLECTED = 32


@dataclass(frozen=True)
class FileResult:
    """The result of checking one file. Its problems may also be in files that it imports."""

    path: str
    problems: tuple[Problem, ...] = ()
    error: str | None = None
    allows: tuple[Allow, ...] = ()
    followed: tuple[tuple[str, int], ...] = ()
    # The other paths that the result depends on.
    consulted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checked:
    """The combined result of all files."""

    problems: list[Problem]
    errors: list[str]
    files: int


def check_overlaid(paths: Iterable[str], overlay: Mapping[str, bytes]) -> list[FileResult]:
    """Check files. `overlay` holds contents that replace those on disk, also for imports."""
    project = Project(lambda path: load(path, overlay.get(path)))
    return [check_file(path, project) for path in paths]


def check_file(path: str, project: Project) -> FileResult:
    """Check one file, given by its absolute path or `-`."""
    try:
        module = project.load(path)
        analysis = analyse(module, project)
    except SourceError as error:
        return FileResult(path, error=str(error))
    problems = tuple(_move_into_cell(module, p) if p.file == path else p for p in check(analysis))
    consulted = tuple(sorted(analysis.consulted - {path}))
    return FileResult(
        path,
        problems,
        None,
        allows(module.text, module.cells or ()),
        tuple(sorted(analysis.followed)),
        consulted,
    )


def _move_into_cell(module: SourceModule, problem: Problem) -> Problem:
    """Return a notebook's problem with its lines counted from the start of its cell."""
    for cell in module.cells or ():
        if cell.first <= problem.line <= cell.last:
            return shift_problem(problem, 1 - cell.first, cell.number)
    return problem


def shift_problem(problem: Problem, by: int, cell: int | None) -> Problem:
    """Return the problem with its lines and edits moved, between a notebook's cell and the joined text."""
    fix = problem.fix
    if fix is not None:
        moved = (replace(edit, line=edit.line + by, end_line=edit.end_line + by) for edit in fix.edits)
        fix = replace(fix, edits=tuple(moved))
    line, end_line = problem.line + by, problem.end_line + by
    return replace(problem, cell=cell, line=line, end_line=end_line, fix=fix)


def check_paths(paths: Sequence[str], *, jobs: int | None = None, cache: Cache | None = None) -> Checked:
    """Check files (paths or `-`) and combine their results."""
    absolute = [path if path == STDIN else os.path.abspath(path) for path in paths]
    known = {} if cache is None else cache.recall(absolute)
    results: dict[str, FileResult] = {path: _unpack(packed) for path, packed in known.items()}
    missing = [path for path in absolute if path not in results]
    for result in _run(missing, jobs):
        results[result.path] = result
    if cache is not None and missing:
        fresh = {path: _pack(results[path]) for path in missing if path != STDIN}
        cache.remember(fresh, {path: results[path].consulted for path in fresh})
    return combine([results[path] for path in absolute])


def _run(paths: list[str], jobs: int | None) -> Iterator[FileResult]:
    workers = min(jobs or os.cpu_count() or 1, max(1, len(paths) // (_PARALLEL // 2)))
    if workers <= 1 or STDIN in paths:
        yield from _check_all(paths, Project())
        return
    all_rules()
    method = "fork" if hasattr(os, "fork") else "spawn"
    with ProcessPoolExecutor(workers, mp_context=get_context(method)) as pool:
        for part in pool.map(_check_part, _split(paths, workers * 8)):
            yield from part


def _split(paths: list[str], parts: int) -> list[list[str]]:
    """Split paths into parts of about equal bytes, largest first. Neighbours stay together: they share imports."""
    sizes = {path: os.path.getsize(path) if os.path.isfile(path) else 0 for path in paths}
    limit = sum(sizes.values()) / parts
    made: list[list[str]] = []
    filled = limit
    for path in sorted(paths):
        if filled >= limit:
            made.append([])
            filled = 0
        made[-1].append(path)
        filled += sizes[path]
    return sorted(made, key=lambda part: sum(sizes[path] for path in part), reverse=True)


@functools.cache
def _worker_project() -> Project:
    """Return the project that all checks of a worker process share."""
    return Project()


def _check_part(paths: list[str]) -> list[FileResult]:
    return list(_check_all(paths, _worker_project()))


def _check_all(paths: Iterable[str], project: Project) -> Iterator[FileResult]:
    """Check files one after the other, without automatic garbage collection: it would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for number, path in enumerate(paths, 1):
            yield check_file(path, project)
            if number % _COLLECTED == 0:
                _collect(project)
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _collect(project: Project) -> None:
    """Free the memory of the latest analyses. Later collections skip the trees that are kept."""
    project.forget()
    gc.collect()
    gc.freeze()


def combine(results: Sequence[FileResult]) -> Checked:
    """Combine results: a file's problems come from its own check and from the checks of files that call into it."""
    paths = {result.path for result in results}
    followed = {place for result in results for place in result.followed}
    best: dict[tuple[str, int | None, int, str], Problem] = {}
    for result in results:
        for problem in result.problems:
            if problem.file not in paths:
                continue
            # Some file does call the function: its calls decide, not the presumption.
            if problem.presumed is not None and (problem.file, problem.presumed) in followed:
                continue
            best.setdefault((problem.file, problem.cell, problem.line, problem.kind), problem)
    allowed = {result.path: result.allows for result in results if result.allows}
    kept = list(_drop_allowed(list(best.values()), allowed))
    kept.sort(key=lambda p: (p.file, p.cell or 0, p.line, p.column, p.code))
    errors = [result.error for result in results if result.error is not None]
    return Checked(kept, errors, len(results))


def _drop_allowed(problems: list[Problem], allowed: dict[str, tuple[Allow, ...]]) -> Iterator[Problem]:
    used: set[tuple[str, Allow]] = set()
    for problem in problems:
        covering = [
            allow
            for allow in allowed.get(problem.file, ())
            if allow.covers(problem.line, problem.end_line, problem.kind, problem.code, problem.cell)
        ]
        used.update((problem.file, allow) for allow in covering)
        if not covering:
            yield problem
    for path, comments in allowed.items():
        for allow in comments:
            if (path, allow) not in used:
                yield _report_comment(path, allow)


def _report_comment(path: str, allow: Allow) -> Problem:
    """Report a comment that ignores nothing, either because there is nothing to ignore or because it is unreadable."""
    if allow.unreadable:
        message = f"cannot read this comment ({allow.name!r}): write `# stoker: ignore[kind]` or `ignore-file[kind]`"
    elif allow.name and not is_known(allow.name):
        hint = suggest(allow.name, stalls()) or "; `stoker explain --list` lists all"
        message = f"this comment ignores {allow.name!r}, which is not a kind or code{hint}"
    else:
        what = repr(allow.name) if allow.name else "every kind"
        message = f"this comment ignores {what}, but nothing here needs it"
    place = (path, allow.line, allow.column, allow.line)
    return Problem(UNUSED_KIND, UNUSED_CODE, *place, message, "warning", cell=allow.cell)


# A result as plain tuples: path, problems, error, allow-comments, followed, consulted.
_Packed = tuple[
    str,
    tuple[tuple[Any, ...], ...],
    str | None,
    tuple[tuple[Any, ...], ...],
    tuple[tuple[str, int], ...],
    tuple[str, ...],
]


def _pack(result: FileResult) -> _Packed:
    """Return a result as plain tuples for the cache: fast to load, and unable to run code."""
    problems, allowed = (tuple(map(astuple, found)) for found in (result.problems, result.allows))
    return result.path, problems, result.error, allowed, result.followed, result.consulted


def _unpack(packed: _Packed) -> FileResult:
    path, problems, error, allowed, followed, consulted = packed
    return FileResult(
        path,
        tuple(map(_unpack_problem, problems)),
        error,
        tuple(Allow(*a) for a in allowed),
        followed,
        consulted,
    )


def _unpack_problem(values: tuple[Any, ...]) -> Problem:
    problem = Problem(*values)
    if problem.fix is None:
        return problem
    safety, edits, message = values[_FIX]
    return replace(problem, fix=Fix(safety, tuple(Edit(*edit) for edit in edits), message))


_FIX = [field.name for field in fields(Problem)].index("fix")
