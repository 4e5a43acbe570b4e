"""Checkpoints in a bucket: written here, uploaded by the saver's thread, counted once their manifest is there.

    s3://bucket/run/checkpoint-00000007-step-1400.stoker
    s3://bucket/run/parts/checkpoint-00000007-step-1400.worker-1.stoker
    s3://bucket/run/checkpoint-00000007-step-1400.manifest     put last: names, sizes and checksums of the others

The bucket decides where a run resumes: local files that no manifest names are removed. A local file is used if its
checksum is that of the manifest, and fetched otherwise. If the bucket cannot be reached, the run uses the local files,
and a warning says so once.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypedDict

from stoker.errors import ArgumentError, CheckpointError, UnavailableError
from stoker.files import replacing
from stoker.storage.fetching import PART_BYTES
from stoker.storage.remote import Remote, RemoteFile
from stoker.train.checkpoint import files
from stoker.train.checkpoint.directory import PARTS, list_finished, parts_of, step_of
from stoker.train.checkpoint.options import Checkpoint, CheckpointWarning

_MANIFEST = re.compile(r"(checkpoint-(\d+)-step-\d+)\.manifest")


class ManifestEntry(TypedDict):
    """A file of a checkpoint; `name` is relative to the directory."""

    name: str
    size: int
    crc: int


def bucket_of(checkpoint: Checkpoint) -> Callable[[Path], CheckpointBucket] | None:
    """Return a function that opens a run's bucket for a local directory; None if checkpoints stay on this machine."""
    return partial(CheckpointBucket, os.fspath(checkpoint.directory)) if checkpoint.is_elsewhere else None


class CheckpointBucket:
    """The checkpoints of one run behind a URL, and their copies in a local directory.

    Args:
        url: where the checkpoints are.
        directory: where the checkpoints are written first.
    """

    def __init__(self, url: str, directory: Path) -> None:
        self._remote = Remote(url)
        self._parts = Remote(f"{self._remote.url}/{PARTS}")
        self._directory = directory
        self._warned = False

    def pull(self, before: int | None = None) -> None:
        """Make the local directory agree with the bucket, down to the newest good checkpoint.

        Args:
            before: fetch only checkpoints of steps below this one, and leave the others as they are.

        Raises:
            CheckpointError: the bucket cannot be reached, and there are no local checkpoints.
        """
        try:
            manifests = self._list_manifests()
            if before is None:
                self._remove_strangers({path for path, _ in manifests})
                self._prune(len(manifests))
            for path, manifest in reversed(manifests):
                if before is not None and step_of(path) >= before:
                    continue
                if self._fetch(path, manifest):
                    return
        except UnavailableError as error:
            if not list_finished(self._directory):
                raise CheckpointError(
                    f"{error}; no checkpoint of this run is on this machine, so training cannot continue"
                ) from None
            self._warn(f"{error}; training continues from the checkpoints in {self._directory}")

    def fetch(self, name: str) -> None:
        """Fetch the checkpoint from which the chief resumes, unless it is here."""
        path = self._directory / name
        try:
            manifest = self._read_manifest(self._manifest_of(path))
            if manifest is not None:
                self._fetch(path, manifest)
        except UnavailableError as error:
            # The chief resumes from what is on its machine, which may be this one.
            self._warn(f"{error}; looking for {name} in {self._directory}")

    def upload_part(self, path: Path) -> None:
        """Upload a worker's part of a checkpoint, for a chief on another machine."""
        try:
            self._remote.upload(path, self._place(path))
        except UnavailableError as error:
            self._warn(f"{error}; the checkpoint is only in {self._directory}")

    def fetch_part(self, path: Path) -> None:
        """Fetch the part of a worker on another machine, if it is in the bucket by now."""
        try:
            found = self._remote.state(self._place(path))
        except UnavailableError:
            return
        if found is not None:
            self._download(found, path)

    def publish(self, path: Path, keep: int) -> None:
        """Upload a complete local checkpoint. Once it counts, delete all but the newest `keep`.

        Raises:
            CheckpointError: another run saves in the same place, or writing is denied.
        """
        try:
            entries = [self._upload(one) for one in (*parts_of(path), path)]
            text = json.dumps({"files": entries}, sort_keys=True).encode()
            if not self._remote.create(self._manifest_of(path), text):
                raise CheckpointError(
                    f"another run saves checkpoints in {self._remote.name}: give each run a place of its own"
                )
            self._prune(keep)
        except UnavailableError as error:
            self._warn(f"{error}; the checkpoint is only in {self._directory}")
        except ArgumentError as error:
            raise CheckpointError(str(error)) from None
        else:
            self._warned = False

    def _upload(self, path: Path) -> ManifestEntry:
        """Upload a file, unless a worker has done so. The checksum is that of the local file."""
        size, crc = files.checksum(path)
        there = self._remote.state(self._place(path)) if path.parent.name == PARTS else None
        if there is None or there.size != size:
            self._remote.upload(path, self._place(path))
        return {"name": path.relative_to(self._directory).as_posix(), "size": size, "crc": crc}

    def _list_manifests(self) -> list[tuple[Path, list[ManifestEntry]]]:
        """Return the local paths and manifests of the checkpoints that count, oldest first."""
        found = []
        for file in self._remote.find(deep=False):
            match = _MANIFEST.fullmatch(file.path.rpartition("/")[2])
            manifest = self._read_manifest(file.path) if match else None
            if match and manifest is not None:
                found.append((int(match[2]), self._directory / f"{match[1]}.stoker", manifest))
        return [(path, manifest) for _, path, manifest in sorted(found, key=lambda one: one[0])]

    def _read_manifest(self, place: str) -> list[ManifestEntry] | None:
        """Return the entries of a manifest; None if it is gone or damaged."""
        there = self._remote.state(place)
        if there is None:
            return None
        try:
            entries = json.loads(self._remote.read(there))["files"]
            return [
                {"name": _check_name(one["name"]), "size": int(one["size"]), "crc": int(one["crc"])}
                for one in entries
            ]
        except (ValueError, KeyError, TypeError):
            warnings.warn(f"skipped {self._remote.name}: {place} is damaged", CheckpointWarning, stacklevel=5)
            return None

    def _fetch(self, path: Path, manifest: list[ManifestEntry]) -> bool:
        """Fetch the files of a checkpoint that are not here yet. False if they differ from what was written."""
        # The file that makes the checkpoint count comes last, here as in the bucket.
        for entry in sorted(manifest, key=lambda one: one["name"] == path.name):
            target = self._directory / entry["name"]
            if not _is_same(target, entry):
                there = self._remote.state(self._place(target))
                if there is None or there.size != entry["size"]:
                    break
                self._download(there, target)
                if not _is_same(target, entry):
                    target.unlink()
                    break
        else:
            return True
        message = f"skipped the checkpoint {path.name} of {self._remote.name}: a file is missing or damaged"
        warnings.warn(message, CheckpointWarning, stacklevel=4)
        path.unlink(missing_ok=True)
        return False

    def _download(self, there: RemoteFile, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + files.TEMPORARY)
        with replacing(target, durable=True, temporary=temporary) as stream:
            for start in range(0, there.size, PART_BYTES):
                stream.write(self._remote.read(there, start, min(start + PART_BYTES, there.size)))

    def _remove_strangers(self, known: set[Path]) -> None:
        """Remove local checkpoints that do not count in the bucket."""
        for path in list_finished(self._directory):
            if path not in known:
                for one in (path, *parts_of(path)):
                    one.unlink(missing_ok=True)

    def _prune(self, keep: int) -> None:
        """Delete old checkpoints, and files that never became one. Manifests go first, so that none lacks its files."""
        found = [*self._remote.find(deep=False), *self._parts.find(deep=False)]
        # Directories below may hold the checkpoints of other runs.
        names = {file.path: file.path.removeprefix(f"{self._remote.path}/") for file in found}
        numbers = {path: int(match[1]) for path, name in names.items() if (match := _OWN.fullmatch(name))}
        manifests = sorted({numbers[path] for path in numbers if path.endswith(".manifest")})
        kept = manifests[max(0, len(manifests) - keep) :]
        old = [path for path, number in numbers.items() if number not in kept]
        self._remote.delete(sorted(old, key=lambda path: not path.endswith(".manifest")))

    def _place(self, path: Path) -> str:
        """Return the path of a local file in the bucket."""
        return f"{self._remote.path}/{path.relative_to(self._directory).as_posix()}"

    def _manifest_of(self, path: Path) -> str:
        return f"{self._remote.path}/{path.stem}.manifest"

    def _warn(self, message: str) -> None:
        """Warn once until the bucket answers again."""
        if not self._warned:
            self._warned = True
            warnings.warn(message, CheckpointWarning, stacklevel=4)


_OWN = re.compile(rf"(?:{PARTS}/)?checkpoint-(\d+)-step-[^/]*")


def _is_same(path: Path, entry: ManifestEntry) -> bool:
    """Return whether a local file is the one that the manifest names."""
    try:
        return files.checksum(path) == (entry["size"], entry["crc"])
    except files.DamagedFile:
        return False


def _check_name(name: object) -> str:
    """Return the name of a file in the directory.

    Raises:
        ValueError: the file would be outside the directory.
    """
    parts = str(name).split("/")
    inside = len(parts) == 1 or (len(parts) == 2 and parts[0] == PARTS)
    if not inside or parts[-1] in ("", ".", ".."):
        raise ValueError(name)
    return str(name)
