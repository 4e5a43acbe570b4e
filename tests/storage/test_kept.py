"""Copies of remote files: the same bytes whatever the server does, fetched once, bounded, never out of date."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker import storage
from stoker.errors import ArgumentError, StokerError, UnavailableError
from stoker.storage import fetching
from stoker.storage.remote import Remote
from tests.storage.buckets import Bucket
from tests.support import HANGS_S

FAULTS = ["500", "503", "cut", "short"]


def _content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def _at_first(*faults: str) -> Callable[[str, str, int], str]:
    """Each request fails in these ways before it succeeds."""
    return lambda method, path, count: faults[count - 1] if count <= len(faults) else ""


@pytest.mark.parametrize("fault", FAULTS)
def test_bytes_survive_a_bad_server(bucket: Bucket, fault: str) -> None:
    content = _content(100_000)
    url = bucket.put("a/b.bin", content)
    bucket.proxy.fault = _at_first(fault)
    assert Path(storage.local_path(url)).read_bytes() == content
    assert bucket.proxy.faults[fault] > 0


def test_large_files_come_in_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PART_BYTES", 1 << 16)
    content = _content(10 * (1 << 16) + 17)
    url = bucket.put("large.bin", content)
    bucket.proxy.fault = lambda method, path, count: (
        FAULTS[count - 1] if method == "GET" and count < 4 else ""
    )
    assert Path(storage.local_path(url)).read_bytes() == content
    ranges = {one for method, path, one in bucket.proxy.seen if method == "GET" and one}
    assert len(ranges) == 11
    assert {"500", "503", "cut"} <= set(bucket.proxy.faults)


def test_a_part_has_eight_mebibytes(bucket: Bucket) -> None:
    size = (16 << 20) + 5
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert Path(storage.local_path(bucket.put("large.bin", content))).read_bytes() == content
    ranges = {one for method, _, one in bucket.proxy.seen if method == "GET" and one}
    assert ranges == {"bytes=0-8388607", "bytes=8388608-16777215", "bytes=16777216-16777220"}


def test_sixteen_requests_are_made_at_a_time(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PART_BYTES", 1 << 10)
    content = _content(48 << 10)
    url = bucket.put("many.bin", content)
    together, waiting, most = threading.Barrier(16), threading.Semaphore(16), []

    def hold(method: str, path: str) -> None:
        """Each waits until sixteen are there."""
        if method == "GET" and "?" not in path:
            most.append(waiting.acquire(blocking=False))
            together.wait(HANGS_S)
            waiting.release()

    bucket.proxy.hold = hold
    assert Path(storage.local_path(url)).read_bytes() == content
    assert most == [True] * 48


def test_settings_of_the_users_own_for_the_backend_hold(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.config import conf

    monkeypatch.setitem(conf, "s3", {"config_kwargs": {"user_agent_extra": "mine"}})
    told = Remote(bucket.url)._system.config_kwargs
    assert told == {"max_pool_connections": 16, "user_agent_extra": "mine"}
    monkeypatch.setitem(conf, "s3", {"config_kwargs": {"max_pool_connections": 4}})
    assert Remote(bucket.url)._system.config_kwargs == {"max_pool_connections": 4}


def test_files_globs_and_folders(bucket: Bucket) -> None:
    for key in ("x/a.csv", "x/b.csv", "x/c.txt", "x/deep/d.csv", "xy.csv"):
        bucket.put(key, key.encode())
    one = Path(storage.local_path(f"{bucket.url}/x/a.csv"))
    assert one.name == "a.csv"
    assert one.read_bytes() == b"x/a.csv"
    glob = Path(storage.local_path(f"{bucket.url}/x/*.csv"))
    assert sorted(path.name for path in glob.parent.glob(glob.name)) == ["a.csv", "b.csv"]
    tree = Path(storage.local_path(f"{bucket.url}/x/"))
    assert {str(path.relative_to(tree)) for path in tree.rglob("*.*")} == {
        "a.csv",
        "b.csv",
        "c.txt",
        "deep/d.csv",
    }
    flat = Path(storage.local_path(f"{bucket.url}/x", (".csv",), deep=False))
    assert {str(path.relative_to(flat)) for path in flat.rglob("*.*")} == {"a.csv", "b.csv"}
    assert storage.origin_of(one) == f"{bucket.url}/x/a.csv"
    assert storage.origin_of(tree / "deep" / "d.csv") == f"{bucket.url}/x/deep/d.csv"


def test_a_file_is_fetched_once_until_it_changes(bucket: Bucket) -> None:
    url = bucket.put("a.bin", b"one")
    first = storage.local_path(url)
    assert storage.local_path(url) == first
    assert bucket.proxy.gets() == 1
    bucket.put("a.bin", b"two")  # the same size: only the ETag tells
    second = storage.local_path(url)
    assert Path(second).read_bytes() == b"two"
    assert Path(first).read_bytes() == b"one"  # this process may still read it
    assert bucket.proxy.gets() == 2


def test_only_the_changed_files_of_a_folder_are_fetched_again(bucket: Bucket) -> None:
    for number in range(5):
        bucket.put(f"f/{number}", f"{number}".encode())
    storage.local_path(f"{bucket.url}/f")
    bucket.put("f/3", b"new")
    bucket.proxy.seen.clear()
    tree = Path(storage.local_path(f"{bucket.url}/f"))
    assert [(tree / str(number)).read_text() for number in range(5)] == ["0", "1", "2", "new", "4"]
    assert bucket.proxy.gets() == 1


def test_a_file_that_changes_while_it_is_fetched(bucket: Bucket) -> None:
    url = bucket.put("a.bin", b"a" * 100)

    def change(method: str, path: str, count: int) -> str:
        if method == "GET" and "?" not in path and count == 1:
            bucket.put("a.bin", b"b" * 100)
        return ""

    bucket.proxy.fault = change
    assert Path(storage.local_path(url)).read_bytes() == b"b" * 100


PROGRAM = """
import sys
from pathlib import Path
from stoker import storage
for url in sys.argv[2:]:
    path = Path(storage.local_path(url, cache_bytes=int(sys.argv[1])))
    print(len(path.read_bytes()), flush=True)
sys.stdin.read()
"""


def _start(limit: int, *urls: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(limit), *urls]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _copies(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cache").rglob("*.bin") if path.is_file()}


def test_the_least_recently_used_go_first(bucket: Bucket, tmp_path: Path) -> None:
    urls = [bucket.put(f"{name}.bin", _content(1000)) for name in "abc"]
    with _start(2500, urls[0], urls[1], urls[0]) as first:
        first.communicate()
    with _start(2500, urls[2]) as second:
        second.communicate()
    assert _copies(tmp_path) == {"a.bin", "c.bin"}


def test_what_a_living_process_uses_stays(bucket: Bucket, tmp_path: Path) -> None:
    urls = [bucket.put(f"{name}.bin", _content(1000)) for name in "ab"]
    with _start(1500, urls[0]) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "1000\n"
        with pytest.raises(ArgumentError, match=r"no room for a copy of .*b\.bin.*raise cache_bytes="):
            storage.local_path(urls[1], cache_bytes=1500)
        user.kill()
    assert Path(storage.local_path(urls[1], cache_bytes=1500)).exists()
    assert _copies(tmp_path) == {"b.bin"}


def test_processes_fetch_a_file_once(bucket: Bucket) -> None:
    url = bucket.put("a.bin", _content(1000))
    users = [_start(10_000, url) for _ in range(3)]
    for user in users:
        assert user.communicate()[0] == "1000\n"
    assert bucket.proxy.gets() == 1


EARLY = """
import sys
from stoker import storage
for _ in range(2):
    fetch, paths = storage.begin_copy(sys.argv[1], ("",))
    print(*(path.name + "=" + path.read_text() for path in storage.arriving(paths)), flush=True)
"""


def test_processes_that_read_files_as_they_arrive_fetch_them_once(bucket: Bucket) -> None:
    for number in range(4):
        bucket.put(f"f/{number}", f"content {number}".encode())
    bucket.put("f/.hidden", b"x")
    command = [sys.executable, "-c", EARLY, f"{bucket.url}/f/[0-9]*"]
    users = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    line = " ".join(f"{number}=content {number}" for number in range(4))
    for user in users:
        assert user.communicate()[0] == f"{line}\n{line}\n"
    assert bucket.proxy.gets() == 4


LEAVES = """
import sys
from stoker import storage
fetch, paths = storage.begin_copy(sys.argv[1], ("",))
print(next(storage.arriving(paths)).read_text())
"""


def test_a_program_that_ends_does_not_wait_for_what_it_fetches(bucket: Bucket) -> None:
    for number in range(4):
        bucket.put(f"f/{number}", f"content {number}".encode())
    ended, held = threading.Event(), list[bool]()

    def hold(method: str, path: str, count: int) -> str:
        if method == "GET" and path.endswith("f/3"):
            held.append(ended.wait(HANGS_S))
        return ""

    bucket.proxy.fault = hold
    command = [sys.executable, "-c", LEAVES, f"{bucket.url}/f"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    ended.set()
    assert (process.returncode, process.stdout, process.stderr) == (0, "content 0\n", "")
    assert False not in held


def test_a_process_killed_while_it_fetches_leaves_nothing_that_counts(bucket: Bucket) -> None:
    contents = {f"f/{number}": _content(1000, number) for number in range(20)}
    for key, content in contents.items():
        bucket.put(key, content)
    victim: list[subprocess.Popen[str]] = []

    def kill(method: str, path: str, count: int) -> str:
        if victim and path.endswith("f/11"):
            victim.pop().send_signal(signal.SIGKILL)
        return ""

    bucket.proxy.fault = kill
    with _start(1 << 20, f"{bucket.url}/f") as process:
        victim.append(process)
    assert process.returncode == -signal.SIGKILL
    tree = Path(storage.local_path(f"{bucket.url}/f"))
    assert {f"f/{path.name}": path.read_bytes() for path in tree.iterdir()} == contents


def test_more_than_the_limit_is_refused_in_one_line(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    url = bucket.put("a.bin", _content(2000))
    with pytest.raises(ArgumentError, match=r"takes 2\.0 KiB, but all copies together may take 1000 B"):
        storage.local_path(url, cache_bytes=1000)
    monkeypatch.setenv("STOKER_CACHE_BYTES", "many")
    with pytest.raises(ArgumentError, match="STOKER_CACHE_BYTES='many' must be a number of bytes"):
        storage.local_path(url)


def test_missing_and_forbidden_files_are_named(bucket: Bucket) -> None:
    with pytest.raises(ArgumentError, match=rf"there is no file or folder {bucket.url}/no\.csv"):
        storage.local_path(f"{bucket.url}/no.csv")
    with pytest.raises(ArgumentError, match=r"no file matches .*/\*\.csv"):
        storage.local_path(f"{bucket.url}/*.csv")
    bucket.put("a/b.txt", b"x")
    with pytest.raises(ArgumentError, match=r"the folder .*/a holds no file that ends in \.csv"):
        storage.local_path(f"{bucket.url}/a", (".csv",))
    bucket.proxy.fault = lambda method, path, count: "403"
    with pytest.raises(ArgumentError, match=r"access denied .*check the credentials"):
        storage.local_path(f"{bucket.url}/a/b.txt")


def test_a_server_that_never_recovers_is_given_up_without_secrets(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.storage.remote._FIRST_PAUSE_S", 0.001)
    url = bucket.put("a.bin", b"x")
    bucket.proxy.fault = lambda method, path, count: "500"
    with pytest.raises(UnavailableError) as error:
        storage.local_path(url)
    assert "cannot be used" in str(error.value)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(error.value)
    assert "\n" not in str(error.value)


def test_secrets_of_a_url_are_neither_shown_nor_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path))
    with pytest.raises(ArgumentError) as error:
        storage.local_path("memory://user:hunter2secret@host/no.csv")
    assert "hunter2secret" not in str(error.value)
    fsspec.filesystem("memory").pipe_file("/user:hunter2secret@host/a.csv", b"x")
    storage.local_path("memory://user:hunter2secret@host/a.csv")
    kept_names = [str(path) for path in tmp_path.rglob("*")]
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("hunter2secret" in text for text in kept_names + texts)


def test_a_backend_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(StokerError, match=r"gs:// needs fsspec.*pip install 'stoker\[gcs\]'"):
        storage.local_path("gs://bucket/a.csv")


@pytest.mark.parametrize("path", ["a.csv", "/a/b", "file:///a", "c:/d", Path("s3://b"), None, 3])
def test_paths_are_no_urls(path: object) -> None:
    assert not storage.is_url(path)
