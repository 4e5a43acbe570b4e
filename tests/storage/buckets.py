"""A bucket on a real S3 server, behind a proxy that can break every answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.s3 import Proxy, proxy_to, s3_server

_numbers = itertools.count()


class Bucket:
    """An empty bucket; what is put there does not pass the proxy."""

    def __init__(self, name: str, port: int, proxy: Proxy) -> None:
        import boto3

        self.name, self.url, self.proxy = name, f"s3://{name}", proxy
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self._client.create_bucket(Bucket=name)

    def put(self, key: str, content: bytes) -> str:
        """The URL of a new object."""
        self._client.put_object(Bucket=self.name, Key=key, Body=content)
        return f"{self.url}/{key}"

    def put_tree(self, root: Path, prefix: str = "") -> None:
        """Copy the files of a directory."""
        for path in root.rglob("*"):
            if path.is_file():
                self.put(f"{prefix}{path.relative_to(root).as_posix()}", path.read_bytes())

    def get(self, key: str) -> bytes:
        """The content of an object."""
        content: bytes = self._client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return content

    def delete(self, key: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self.name, Key=key)

    def list_keys(self) -> list[str]:
        """The names of all objects."""
        return [one["Key"] for one in self._client.list_objects_v2(Bucket=self.name).get("Contents", [])]


@pytest.fixture(scope="module")
def _servers() -> Iterator[tuple[int, Proxy, int]]:
    pytest.importorskip("moto")
    with s3_server() as port, proxy_to(port) as (proxy, front):
        yield port, proxy, front


@pytest.fixture
def bucket(
    _servers: tuple[int, Proxy, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    """An empty bucket, and a cache of this test's own."""
    import s3fs

    port, proxy, front = _servers
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{front}",
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "STOKER_CACHE_DIR": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    made = Bucket(f"bucket-{next(_numbers)}", port, proxy)
    proxy.clear()
    yield made
    proxy.clear()
    s3fs.S3FileSystem.clear_instance_cache()
