"""`stoker launch --standby`: spares of real workers take their places, and nobody can tell."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.doctor.measure.worker_spare import read_notes
from stoker.launch.request import NO_SPARES
from tests.launch.support import (
    find_children,
    find_parent,
    is_alive,
    launch,
    run_refused,
    start_job,
    wait_for_notes,
)
from tests.launch.support import (
    read_notes as read_files,
)
from tests.support import wait_until
from tests.train.workers.jobs import PROGRAMS

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]

TRAINING = f"""
import runpy
sys.argv = ["resumes.py", os.getcwd(), *sys.argv[1:]]
runpy.run_path({str(PROGRAMS / "resumes.py")!r}, run_name="__main__")
"""


def last_line(job: subprocess.Popen[str]) -> list[str]:
    """What each worker printed last: the bits it ended with, and the history."""
    stdout, stderr = job.communicate()
    assert job.returncode == 0, stderr
    return sorted(line.partition("] ")[2] for line in stdout.splitlines() if '"bits"' in line)


def wait_for_children(job: subprocess.Popen[str], workers: list[int]) -> set[int]:
    """Wait until each worker has a spare, or a worker has ended; the spares."""
    agent = find_parent(workers[0])
    wait_until(lambda: not is_alive(workers[0]) or len(find_children(agent)) >= 2 * len(workers))
    assert job.poll() is None, job.communicate()
    return find_children(agent) - set(workers)


def wait_for_spares(directory: Path, job: subprocess.Popen[str]) -> tuple[int, list[int], set[int]]:
    """Wait until the workers are at the gate and have spares; the restart, the workers' processes and the spares.

    On a machine too busy for TensorFlow's own heartbeat, the job restarts by itself.
    """
    while True:
        wait_until(lambda: (directory / "reached").exists() or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        restart = max(at for at, _ in read_files(directory, "pid"))
        notes = wait_for_notes(directory, "pid", 2, restart)
        workers = [int(notes[restart, rank]) for rank in range(2)]
        spares = wait_for_children(job, workers)
        if len(spares) == 2 and all(is_alive(one) for one in workers):
            (directory / "reached").unlink()
            return restart, workers, spares


def kill(process: int) -> None:
    """Kill a process, which may have ended by itself on a busy machine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_spares_take_the_places_of_killed_workers_with_the_same_bits(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("alone", "killed")}
    for place in places.values():
        place.mkdir()
    with start_job(places["alone"], TRAINING, "-n", "2") as job:
        expected = last_line(job)
    killed = places["killed"]
    gated = TRAINING.replace("*sys.argv[1:]", "'1'")
    with start_job(killed, gated, "-n", "2", "--standby", "--max-restarts", "9") as job:
        restart, workers, spares = wait_for_spares(killed, job)
        kill(workers[1])
        taken = wait_for_notes(killed, "pid", 2, restart + 1)
        assert {int(taken[restart + 1, rank]) for rank in range(2)} == spares
        everyone = {*workers, *spares}
        # A spare that was killed and one that is stopped: both workers start as usual.
        restart, workers, spares = wait_for_spares(killed, job)
        dead, stopped = spares
        kill(dead)
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: not is_alive(dead))
        kill(workers[0])
        cold = wait_for_notes(killed, "pid", 2, restart + 1)
        assert not {int(cold[restart + 1, rank]) for rank in range(2)} & {*everyone, *spares}
        everyone |= {*workers, *spares, *(int(pid) for pid in cold.values())}
        (killed / "go").touch()
        assert last_line(job) == expected
    assert not any(is_alive(one) for one in everyone)


# What a worker can know about itself; then it trains, and dies when its spare is there.
CURIOUS = """
import resource
facts = {
    "had TensorFlow": "tensorflow" in sys.modules,
    "place": [sys.argv, sys.path, __name__, __file__, os.getcwd(), sorted(sys.modules["__main__"].__dict__)],
    "environment": {name: value for name, value in os.environ.items() if name not in ROUND},
    "process": [os.getppid(), os.getsid(0) - os.getpid(), os.getpgid(0) - os.getpid(), sorted(os.sched_getaffinity(0))],
    "files": sorted(os.listdir("/proc/self/fd")),
    "signals": [str(signal.getsignal(number)) for number in signal.valid_signals()],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": [resource.getrlimit(number) for number in range(10)],
}
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import multiprocessing
import keras, numpy as np, stoker

def answer(queue):
    queue.put((os.environ["STOKER_RESTART"], __name__, "keras" in sys.modules))

if __name__ == "__main__":
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    stoker.fit(model, np.ones((4, 2), "float32"), np.ones((4, 1), "float32"), verbose=0)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=answer, args=[queue])
    child.start()
    facts["child"] = queue.get()
    child.join()
    facts["compilations"] = os.environ["TF_XLA_FLAGS"].count(f"/{os.getpid()}-")
    note("facts", json.dumps(facts))
    if restart == 0:
        while not pathlib.Path("kill").exists(): time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
"""
# TensorFlow sets these when it is imported.
BY_TENSORFLOW = {"TF2_BEHAVIOR", "ENABLE_RUNTIME_UPTIME_TELEMETRY", "HDF5_PLUGIN_PATH"}


def is_by_tensorflow(name: str) -> bool:
    return name in BY_TENSORFLOW or name.startswith(("KMP_", "TPU_"))


@pytest.mark.slow
def test_a_worker_cannot_tell_that_it_was_a_spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.setenv("STOKER_KEEP_COMPILATIONS", "1")
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import os; os.environ['BY_SITE'] = 'set'")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    of_a_round = ["TF_CONFIG", "STOKER_RESTART", "TF_XLA_FLAGS"]
    with start_job(tmp_path, CURIOUS.replace("ROUND", str(of_a_round)), "--standby") as job:
        worker = int(wait_for_notes(tmp_path, "pid", 1)[0, 0])
        (spare,) = wait_for_children(job, [worker])
        (tmp_path / "kill").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0, stderr
    assert read_files(tmp_path, "pid")[1, 0] == str(spare)
    cold, warm = (json.loads(read_files(tmp_path, "facts")[restart, 0]) for restart in (0, 1))
    assert (cold.pop("had TensorFlow"), warm.pop("had TensorFlow")) == (False, True)
    assert cold.pop("child") == ["0", "__mp_main__", True]
    assert warm.pop("child") == ["1", "__mp_main__", True]
    assert cold.pop("compilations") == warm.pop("compilations") == 1
    environment = warm["environment"]
    assert environment["BY_SITE"] == "set"
    added = environment.keys() - cold["environment"].keys()
    assert {name for name in added if not is_by_tensorflow(name)} == set()
    warm["environment"] = {name: value for name, value in environment.items() if name not in added}
    assert warm == cold
    # TensorFlow says so when it is imported without the variable that the program sets before.
    assert "oneDNN custom operations are on" not in stderr


def test_no_spare_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    with start_job(tmp_path, CURIOUS.replace("ROUND", "()"), "--standby") as job:
        worker = int(wait_for_notes(tmp_path, "pid", 1)[0, 0])
        processes = {worker, *wait_for_children(job, [worker])}
        assert len(processes) == 2
        job.kill()
        wait_until(lambda: not any(is_alive(one) for one in processes))


def test_a_program_without_tensorflow_gets_no_spare(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "sys.exit(1 - restart)\n", "-n", "2", "--standby")
    assert outcome.code == 0
    assert {restart for restart, _ in read_files(tmp_path, "pid")} == {0, 1}


@pytest.mark.parametrize(
    ("notes", "changes"),
    [
        ([["numpy", {}], ["tensorflow", {}], ["keras.src", None]], {}),
        ([["keras", {"A": "1"}], ["numpy", {"A": "1"}], ["tensorflow", {"A": "1"}]], {"A": "1"}),
        # NumPy has read other variables than TensorFlow: no process could import both as this one did.
        ([["numpy", {}], ["tensorflow", {"OMP_NUM_THREADS": "1"}]], None),
        ([["numpy", {}]], None),
    ],
)
def test_a_spare_imports_in_the_environment_of_the_worker(
    tmp_path: Path, notes: list[list[object]], changes: dict[str, str] | None
) -> None:
    file = tmp_path / "notes"
    file.write_text("".join(json.dumps(one) + "\n" for one in notes) + '["half')
    imports = read_notes(file)
    assert (imports.changes if imports else None) == changes
    if imports is not None:
        assert imports.modules == [name for name, _ in notes]
    assert read_notes(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ledger",), "--standby does not go with --ledger: use stoker runs show JOB for the goodput"),
        (("--scheduler", "kubernetes", "--image", "i", "--write", "-"), NO_SPARES),
        (("--scheduler", "tf-config"), NO_SPARES),
    ],
)
def test_standby_is_refused_where_it_would_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    config = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    code, stderr = run_refused(tmp_path, "--standby", *words, "train.py")
    assert (code, stderr.strip()) == (2, f"stoker: {said}")
