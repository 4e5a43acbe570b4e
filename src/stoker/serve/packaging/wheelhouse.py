"""The wheels that an image installs, each pinned by its hash in `requirements.txt`, so that a build needs no network.

pip resolves and downloads them for the image's Python. If Stoker runs from its source here, its wheel is built from
that; otherwise it is packed from the installed files, wherever they came from.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Collection, Sequence
from importlib import metadata
from pathlib import Path

import stoker
from stoker.errors import UsageError

_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(-\d[^-]*)?-[^-]+-[^-]+-(?P<platform>[^-]+)\.whl"
)
# The distributions that contain the package `tensorflow`.
_TENSORFLOW = ("tensorflow", "tensorflow-cpu")
# The versions of glibc whose wheels run on the usual base images.
_GLIBC = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")


def fill(directory: Path, wanted: Sequence[str], python: str) -> None:
    """Download the wanted wheels and their dependencies.

    Args:
        directory: an empty directory.
        wanted: requirements in pip's syntax.
        python: the version of the image's Python, such as "3.11".

    Raises:
        UsageError: pip failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    source = _own_source()
    if source is not None:
        _pip("wheel", "--no-deps", "--wheel-dir", str(directory), str(source))
    else:
        pack_installed(directory)
    _pip("download", "--dest", str(directory), "--find-links", str(directory), *_target(python), *wanted)


def _target(python: str) -> list[str]:
    if python == ".".join(platform.python_version_tuple()[:2]) and sys.platform == "linux":
        return ["--only-binary", ":all:"]
    words = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    for version in _GLIBC:
        words += ["--platform", f"manylinux_{version}_x86_64"]
    return [*words, "--platform", "manylinux2014_x86_64", "--platform", "linux_x86_64"]


def _own_source() -> Path | None:
    """Return the directory of Stoker's source, if it runs from there."""
    root = Path(stoker.__file__).parents[2]
    project = root / "pyproject.toml"
    return root if project.is_file() and 'name = "stoker"' in project.read_text(encoding="utf-8") else None


def pack_installed(directory: Path) -> Path:
    """Make a wheel of Stoker's own installed files.

    Raises:
        UsageError: the installation does not list its files.
    """
    installed = metadata.distribution("stoker")
    files = [one for one in installed.files or () if _is_packed(one)]
    if not any(one.name == "WHEEL" for one in files):
        raise UsageError(
            "cannot make a wheel of this Stoker: its installation does not list its files. Put Stoker's wheel and all "
            "others into a directory, and give --wheelhouse DIR"
        )
    target = directory / f"stoker-{installed.version}-py3-none-any.whl"
    lines, record = [], ""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for one in files:
            content = Path(str(one.locate())).read_bytes()
            wheel.writestr(str(one), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{one},sha256={digest},{len(content)}\n")
            if one.name == "WHEEL":
                record = str(one.parent / "RECORD")
        wheel.writestr(record, "".join([*lines, f"{record},,\n"]))
    return target


def _is_packed(file: metadata.PackagePath) -> bool:
    """Return whether a file belongs in a wheel: not a script made for this environment, nor an installer's note."""
    noted = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    return ".." not in file.parts and file.suffix != ".pyc" and file.name not in noted


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
        reason = (errors or said or ["it said nothing"])[-1]
        raise UsageError(f"the wheelhouse cannot be filled: pip {words[0]}: {reason}")


def pin_wheels(directory: Path, wanted: Sequence[str] = ()) -> str:
    """Return the text of `requirements.txt`: every wheel of the directory with its hash.

    Args:
        directory: the wheels.
        wanted: the requirements that the image must meet.

    Raises:
        UsageError: there is no wheel, a wanted one is missing, one is there in two versions, or a file is not a wheel
            for Linux.
    """
    found: dict[str, tuple[str, str]] = {}
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    for file in files:
        match = _WHEEL.fullmatch(file.name)
        if match is None:
            raise UsageError(f"{file} is not a wheel")
        if match["platform"] != "any" and "linux" not in match["platform"]:
            raise UsageError(f"{file} is for {match['platform']}, and images are Linux")
        name = _normalize(match["name"])
        if name in found:
            raise UsageError(
                f"{directory} has {name} twice, in versions {found[name][0]} and {match['version']}"
            )
        found[name] = (match["version"], hashlib.sha256(file.read_bytes()).hexdigest())
    if not found:
        raise UsageError(f"{directory} has no wheels")
    missing = [one for one in wanted if not _is_met(one, found)]
    if missing:
        names = " ".join(f"'{one}'" if "[" in one else one for one in missing)
        raise UsageError(
            f"{directory} has no wheel for {', '.join(missing)}: add it and what it needs, for example with "
            f"pip download --only-binary :all: --dest {directory} --find-links {directory} {names}"
        )
    return "".join(
        f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
        for name, (version, digest) in sorted(found.items())
    )


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_met(requirement: str, found: Collection[str]) -> bool:
    """Return whether there is a wheel for the requirement; TensorFlow's wheel has several names."""
    match = re.match(r"[A-Za-z0-9][\w.-]*", requirement)
    name = _normalize(match[0]) if match else ""
    return name in found or (name in _TENSORFLOW and any(one in found for one in _TENSORFLOW))
