"""The wheels that an image installs, each pinned by its hash in `requirements.txt`, so that a build needs no network.

pip resolves and downloads them for the image's Python; Stoker itself is built from its source where that is what runs
here.
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import stoker
from stoker.errors import UsageError

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(-\d[^-]*)?-[^-]+-[^-]+-(?P<platform>[^-]+)\.whl"
)
# The versions of glibc whose wheels run on the usual base images.
_GLIBC = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")


def fill(directory: Path, wanted: Sequence[str], python: str) -> None:
    """Download the wheels that are wanted, and those they depend on.

    Args:
        directory: an empty one.
        wanted: requirements as pip takes them.
        python: the version of the image's Python, such as "3.11".

    Raises:
        UsageError: pip could not.
    """
    directory.mkdir(parents=True, exist_ok=True)
    source = _own_source()
    if source is not None:
        _pip("wheel", "--no-deps", "--wheel-dir", str(directory), str(source))
    _pip("download", "--dest", str(directory), "--find-links", str(directory), *_target(python), *wanted)


def _target(python: str) -> list[str]:
    if python == ".".join(platform.python_version_tuple()[:2]) and sys.platform == "linux":
        return ["--only-binary", ":all:"]
    words = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    for version in _GLIBC:
        words += ["--platform", f"manylinux_{version}_x86_64"]
    return [*words, "--platform", "manylinux2014_x86_64", "--platform", "linux_x86_64"]


def _own_source() -> Path | None:
    """The directory of Stoker's source, if it runs from there."""
    root = Path(stoker.__file__).parents[2]
    project = root / "pyproject.toml"
    return root if project.is_file() and 'name = "stoker"' in project.read_text(encoding="utf-8") else None


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
        reason = (errors or said or ["it said nothing"])[-1]
        raise UsageError(f"the wheelhouse cannot be filled: pip {words[0]}: {reason}")


def pin_wheels(directory: Path) -> str:
    """The text of `requirements.txt`: every wheel of the directory with its hash.

    Raises:
        UsageError: there is none, one is there in two versions, or something is not a wheel for Linux.
    """
    found: dict[str, tuple[str, str]] = {}
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    for file in files:
        match = _WHEEL.fullmatch(file.name)
        if match is None:
            raise UsageError(f"{file} is not a wheel")
        if match["platform"] != "any" and "linux" not in match["platform"]:
            raise UsageError(f"{file} is for {match['platform']}, and images are Linux")
        name = re.sub(r"[-_.]+", "-", match["name"]).lower()
        if name in found:
            raise UsageError(
                f"{directory} has {name} twice, in versions {found[name][0]} and {match['version']}"
            )
        found[name] = (match["version"], hashlib.sha256(file.read_bytes()).hexdigest())
    if not found:
        raise UsageError(f"{directory} has no wheels")
    return "".join(
        f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
        for name, (version, digest) in sorted(found.items())
    )
