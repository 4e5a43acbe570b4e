"""One copy of the files behind a URL: its place, its files, and the file beside it that describes it.

The copy counts once that file says that the copy is complete; the time of that file is the time of the last use.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.files import make_private_directory, write_atomically
from stoker.storage.remote import RemoteFile


@dataclass(frozen=True)
class LocalCopy:
    """The local copy of the files that a URL names now.

    Attributes:
        place: the copy's directory.
        files: the files that belong to the copy, by relative path.
        url: the URL for people, without secrets.
    """

    place: Path
    files: dict[str, RemoteFile]
    url: str

    @property
    def about(self) -> Path:
        """The file that describes the copy."""
        return self.place.with_name(f"{self.place.name}.json")

    @property
    def bytes(self) -> int:
        """The size of the copy; files of unknown length count as 0."""
        return sum(max(0, file.size) for file in self.files.values())

    def is_complete(self) -> bool:
        """Return whether all files of the copy are there."""
        return self.place.is_dir() and bool(read_about(self.about).get("complete"))

    def describe(self, *, complete: bool) -> None:
        """Write the file that describes the copy."""
        versions = {name: file.version for name, file in self.files.items()}
        about = {"url": self.url, "bytes": self.bytes, "complete": complete, "files": versions}
        make_private_directory(self.about.parent)
        write_atomically(self.about, json.dumps(about), private=True)

    def older_files(self) -> dict[tuple[str, str], Path]:
        """Return the files of other versions of the same URL, by relative path and version."""
        found: dict[tuple[str, str], Path] = {}
        for about in self.other_versions():
            described = read_about(about)
            if described.get("complete"):
                place = place_of(about)
                found |= {(name, str(version)): place / name for name, version in described["files"].items()}
        return found

    def other_versions(self) -> list[Path]:
        """Return the files that describe the other copies of the same URL."""
        beside = (about for about in self.about.parent.glob("@*.json") if about != self.about)
        return [about for about in beside if read_about(about).get("url") == self.url]


def place_of(about: Path) -> Path:
    """Return the directory of the copy that a file describes."""
    return about.with_suffix("")


def read_about(about: Path) -> dict[str, Any]:
    """Read a file that describes a copy; an empty dict if the file is missing or damaged."""
    try:
        found = json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remove(about: Path) -> None:
    """Remove a copy. The file that describes it goes first, so that a partial copy never counts."""
    about.unlink(missing_ok=True)
    place = place_of(about)
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(place.with_name(f"{place.name}.new"), ignore_errors=True)
