"""Files a second: `stoker check` against ruff, flake8 and pylint, on the installed sources of Keras and TensorFlow.

    python benchmarks/check.py [--pylint-sample 60] [--json PATH]

All tools read the same files, one after the other, on this machine. pylint would take an hour for all of them:
it gets every n-th file, and its figure is scaled up, which the table says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path


def installed_sources() -> list[Path]:
    """The packages' directories."""
    spec = importlib.util.find_spec("keras")
    if spec is None or spec.origin is None:
        sys.exit("keras is not installed: pip install 'stoker[cpu]'")
    keras = Path(spec.origin).parent
    return [keras, keras.parent / "tensorflow" / "python"]


def files_under(directories: Sequence[Path]) -> list[str]:
    """All Python files, in order."""
    return sorted(str(path) for directory in directories for path in directory.rglob("*.py"))


def seconds(command: Sequence[str], cwd: str) -> float:
    """Run a command, discard what it says, return its wall time. Findings are no failure, crashes are."""
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    elapsed = time.perf_counter() - start
    if "Traceback" in done.stderr:
        sys.exit(f"{command[0]} crashed:\n{done.stderr[-2000:]}")
    return elapsed


def measure(sources: list[str], directories: list[Path], sample: int, cwd: str) -> list[dict[str, object]]:
    """One row a tool."""
    python = sys.executable
    folders = [str(directory) for directory in directories]
    stoker = [python, "-m", "stoker", "check", "--format", "concise"]
    rows: list[dict[str, object]] = []

    def row(tool: str, files: int, elapsed: float, note: str = "") -> None:
        rows.append(
            {"tool": tool, "files": files, "seconds": elapsed, "files_per_s": files / elapsed, "note": note}
        )
        print(
            f"{tool:<22} {files:>6} files {elapsed:>9.2f} s {files / elapsed:>10.0f} files/s  {note}",
            flush=True,
        )

    ruff = [python, "-m", "ruff", "check", "--quiet", "--isolated", "--no-respect-gitignore"]
    # Warm the disk cache for everybody.
    seconds([*ruff, "--no-cache", *folders], cwd)
    row("ruff, cold", len(sources), min(seconds([*ruff, "--no-cache", *folders], cwd) for _ in range(3)))
    row("stoker, cold", len(sources), min(seconds([*stoker, "--no-cache", *folders], cwd) for _ in range(3)))
    cache = ["--cache-dir", os.path.join(cwd, "ruff-cache")]
    seconds([*ruff, *cache, *folders], cwd)
    row("ruff, unchanged", len(sources), min(seconds([*ruff, *cache, *folders], cwd) for _ in range(3)))
    seconds([*stoker, *folders], cwd)
    row("stoker, unchanged", len(sources), min(seconds([*stoker, *folders], cwd) for _ in range(3)))
    one = os.path.join(folders[0], "src", "trainers", "trainer.py")
    row("stoker, one file", 1, min(seconds([*stoker, "--no-cache", one], cwd) for _ in range(5)))
    if importlib.util.find_spec("flake8"):
        row("flake8", len(sources), seconds([python, "-m", "flake8", "--isolated", *folders], cwd))
    if importlib.util.find_spec("pylint"):
        part = sources[:: max(1, len(sources) // sample)]
        jobs = f"-j{os.cpu_count() or 1}"
        elapsed = seconds([python, "-m", "pylint", jobs, "--persistent=n", *part], cwd)
        row("pylint", len(sources), elapsed * len(sources) / len(part), f"scaled up from {len(part)} files")
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pylint-sample", type=int, default=60)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    directories = installed_sources()
    sources = files_under(directories)
    # A directory of its own, so that no configuration and no old cache is found.
    cwd = tempfile.mkdtemp(prefix="bench-check-")
    try:
        (Path(cwd) / "pyproject.toml").touch()
        rows = measure(sources, directories, args.pylint_sample, cwd)
    finally:
        shutil.rmtree(cwd)
    by_tool = {str(row["tool"]): float(str(row["seconds"])) for row in rows}
    print(f"\nstoker / ruff, cold: {by_tool['stoker, cold'] / by_tool['ruff, cold']:.1f}x the time")
    print(
        f"stoker / ruff, unchanged: {by_tool['stoker, unchanged'] / by_tool['ruff, unchanged']:.1f}x the time"
    )
    if "pylint" in by_tool:
        print(f"pylint / stoker, cold: {by_tool['pylint'] / by_tool['stoker, cold']:.0f}x the time")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
