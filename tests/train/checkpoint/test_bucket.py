"""Checkpoints in a bucket: what counts, what is used, what happens when the bucket fails or the process is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.errors import CheckpointError
from tests.storage.buckets import Bucket
from tests.support import HANGS_S, ROOT
from tests.train.programs.bucket_runs import train

pytestmark = pytest.mark.tensorflow


def _manifests(bucket: Bucket) -> list[str]:
    return sorted(key for key in bucket.list_keys() if key.endswith(".manifest"))


def _check_whole(bucket: Bucket) -> None:
    """Every manifest in the bucket names files that are there, as they were written."""
    for key in _manifests(bucket):
        for entry in json.loads(bucket.get(key))["files"]:
            content = bucket.get(f"run/{entry['name']}")
            assert (len(content), zlib.crc32(content)) == (entry["size"], entry["crc"])


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Go on with an empty disk, as on a new machine."""
    disks = iter(range(10))
    return lambda: monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / f"disk-{next(disks)}"))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.storage.remote._FIRST_PAUSE_S", 0.001)


def _stop_at(step: int, url: str, **options: Any) -> int:
    """Train and stop there; the step at which it began."""
    import keras
    import numpy as np

    began: list[int] = []

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            count = int(self.model.optimizer.iterations.numpy())
            began.append(count)
            if count >= step:
                raise KeyboardInterrupt

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("adam", "mse")
    x = np.ones((64, 4), np.float32)
    checkpoint = stoker.Checkpoint(url, every=5, **options)
    with pytest.raises(KeyboardInterrupt):
        stoker.fit(
            model, x, x[:, :3], batch_size=8, epochs=9, verbose=0, checkpoint=checkpoint, callbacks=[Stop()]
        )
    return began[0] - 1


def test_a_run_goes_on_from_the_bucket_on_another_machine(bucket: Bucket, forget: Callable[[], None]) -> None:
    url = f"{bucket.url}/run"
    assert _stop_at(12, url) == 0
    _check_whole(bucket)
    forget()
    assert _stop_at(30, url) == 12
    _check_whole(bucket)


def test_any_file_system_of_fsspec_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}/run"
    forget()
    assert _stop_at(12, url) == 0
    forget()
    assert _stop_at(30, url, keep=1) == 12
    names = [name for name in fsspec.filesystem("memory").find(f"/{tmp_path.name}") if "manifest" in name]
    assert len(names) == 1


def test_the_local_copy_is_used_if_it_is_the_same(bucket: Bucket) -> None:
    _stop_at(12, f"{bucket.url}/run")
    bucket.proxy.seen.clear()
    assert _stop_at(14, f"{bucket.url}/run") == 12
    fetched = [path for method, path, _ in bucket.proxy.seen if method == "GET" and path.endswith(".stoker")]
    assert fetched == []


def test_old_ones_are_deleted_once_the_new_one_counts(bucket: Bucket) -> None:
    other = "run/other/checkpoint-00000001-step-5.stoker"  # of a run below this one
    bucket.put(other, b"x")
    _stop_at(60, f"{bucket.url}/run", keep=2)
    assert bucket.get(other) == b"x"
    bucket.delete(other)
    assert len(_manifests(bucket)) == 2
    stems = {key.removesuffix(".manifest") for key in _manifests(bucket)}
    assert {key.removesuffix(".stoker") for key in bucket.list_keys() if key.endswith(".stoker")} == stems


def test_only_whole_manifests_count(bucket: Bucket, forget: Callable[[], None]) -> None:
    url = f"{bucket.url}/run"
    _stop_at(32, url)
    newest = _manifests(bucket)[-1]
    bucket.delete(newest)
    forget()
    steps = [int(key.rpartition("-")[2].removesuffix(".manifest")) for key in _manifests(bucket)]
    assert _stop_at(40, url) == steps[-1]
    assert newest.replace(".manifest", ".stoker") not in bucket.list_keys()  # it counted for nothing


def test_a_checkpoint_that_is_gone_here_and_damaged_there_is_skipped(
    bucket: Bucket, forget: Callable[[], None]
) -> None:
    url = f"{bucket.url}/run"
    _stop_at(32, url)
    newest = _manifests(bucket)[-1].replace(".manifest", ".stoker")
    content = bytearray(bucket.get(newest))
    content[len(content) // 2] ^= 1
    bucket.put(newest, bytes(content))
    forget()
    with pytest.warns(stoker.CheckpointWarning, match="skipped the checkpoint"):
        assert _stop_at(40, url) < 32


def test_local_files_that_the_bucket_does_not_know_are_not_used(bucket: Bucket) -> None:
    url = f"{bucket.url}/run"
    _stop_at(12, url)
    for key in bucket.list_keys():
        bucket.delete(key)  # somebody wants to start over
    assert _stop_at(14, url) == 0


def test_a_bucket_out_of_reach_keeps_local_ones_and_says_so_once(bucket: Bucket) -> None:
    url = f"{bucket.url}/run"
    _stop_at(12, url)
    bucket.proxy.fault = lambda method, path, count: "500"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert _stop_at(40, url) == 12
    lines = [str(one.message) for one in said if issubclass(one.category, stoker.CheckpointWarning)]
    assert len(lines) == 1
    assert "training continues from the checkpoints in" in lines[0]
    bucket.proxy.fault = lambda method, path, count: ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _stop_at(44, url) == 12  # the bucket decides: what it never got is done again
    _check_whole(bucket)


def test_nothing_here_and_no_bucket_is_an_error(bucket: Bucket) -> None:
    bucket.proxy.fault = lambda method, path, count: "500"
    for _ in range(2):  # the directory is given back
        with pytest.raises(CheckpointError, match="no checkpoint of this run is on this machine"):
            stoker.fit(*_tiny(), checkpoint=f"{bucket.url}/run", verbose=0)


def _tiny() -> tuple[Any, Any, Any]:
    import keras
    import numpy as np

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model, np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32)


def test_two_runs_in_one_place_do_not_mix(bucket: Bucket, tmp_path: Path) -> None:
    from stoker.train.checkpoint.bucket import CheckpointBucket

    for number, content in enumerate((b"one", b"two")):
        local = tmp_path / str(number)
        local.mkdir()
        path = local / "checkpoint-00000001-step-5.stoker"
        path.write_bytes(content)
        one = CheckpointBucket(f"{bucket.url}/run", local)
        if number:
            with pytest.raises(CheckpointError, match="another run saves checkpoints in"):
                one.publish(path, 3)
        else:
            one.publish(path, 3)
            one.publish(path, 3)  # an answer that was lost: the same again is no other run


KILLS = [("PUT", ".stoker"), ("PUT", ".manifest"), ("DELETE", "checkpoint")]


@pytest.mark.slow
def test_killed_runs_end_with_the_bits_of_one_left_alone(bucket: Bucket, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    place.mkdir()
    waiting = list(KILLS)
    killed: list[tuple[str, str]] = []
    saves = 0

    def kill(method: str, path: str, count: int) -> str:
        """Once a process saves, at the next request of the kind."""
        nonlocal saves
        saves += method == "PUT" and path.endswith(".stoker")
        if waiting and saves and method == waiting[0][0] and waiting[0][1] in path:
            process = int((place / "pid").read_text())
            killed.append(waiting.pop(0))
            saves = 0
            os.kill(process, signal.SIGKILL)
            return "500"  # what was being sent is lost with it
        return ""

    bucket.proxy.fault = kill
    command = [sys.executable, "-m", "tests.train.programs.bucket_runs", f"{bucket.url}/run", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert killed == KILLS
    assert json.loads((place / "end.json").read_text()) == json.loads(
        json.dumps(train(str(tmp_path / "alone")))
    )
    _check_whole(bucket)


@pytest.mark.slow
def test_workers_of_a_job_need_no_common_disk() -> None:
    command = [sys.executable, "benchmarks/soak_bucket.py", "--kills", "2", "--epochs", "60", "--seed", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "bit-identical" in done.stdout
