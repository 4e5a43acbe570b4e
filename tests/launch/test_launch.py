"""`stoker launch` on this machine: real workers that are killed, stopped, preempted or missing."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stoker.goodput.events import StepsDone, encode
from stoker.launch import ports
from stoker.launch.hopeless import RoundErrors, is_hopeless
from tests.launch.support import is_alive, launch, read_notes, start_job, wait_for_notes
from tests.support import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

QUICK = ("--heartbeat", "1s")


def test_every_worker_knows_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    program = """
print("out of", rank, *sys.argv[1:])
print("trouble", file=sys.stderr)
seen = {"config": cluster, "job": os.environ["STOKER_JOB"], "size": size, "names": sorted(os.environ)}
note("seen", json.dumps(seen))
"""
    outcome = launch(tmp_path, program, "-n", "3", arguments=("--epochs", "2"))
    assert outcome.code == 0
    assert sorted(outcome.stdout.splitlines()) == [f"[{rank}] out of {rank} --epochs 2" for rank in range(3)]
    assert sorted(outcome.stderr.splitlines())[:3] == [f"[{rank}] trouble" for rank in range(3)]
    seen = {rank: json.loads(text) for (_, rank), text in read_notes(tmp_path, "seen").items()}
    assert {rank: one["config"]["task"] for rank, one in seen.items()} == {
        rank: {"type": "worker", "index": rank} for rank in range(3)
    }
    (cluster,) = {json.dumps(one["config"]["cluster"]) for one in seen.values()}
    assert len(set(json.loads(cluster)["worker"])) == 3
    (job,) = {one["job"] for one in seen.values()}
    assert f"job {job}: 3 workers" in outcome.stderr
    assert (tmp_path / ".stoker" / "jobs" / job / "worker-1.log").read_text() in (
        "out of 1 --epochs 2\ntrouble\n",
        "trouble\nout of 1 --epochs 2\n",
    )
    # Nothing of ours is left in the environment of processes that the program starts.
    assert not {"STOKER_HEARTBEAT", "STOKER_PYTHONPATH", "PYTHONPATH"} & set(seen[0]["names"])


def test_all_start_again_at_fresh_ports_when_one_is_killed(tmp_path: Path) -> None:
    program = """
note("cluster", cluster["cluster"]["worker"])
if restart == 0:
    if rank == 1:
        while len(list(pathlib.Path().glob("pid-0-?"))) < 3: time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
"""
    outcome = launch(tmp_path, program, "-n", "3")
    assert outcome.code == 0
    assert "stoker: worker 1 was killed by SIGKILL; restarting all workers (1 of 3)" in outcome.stderr
    clusters = read_notes(tmp_path, "cluster")
    assert {rank for restart, rank in clusters if restart == 1} == {0, 1, 2}
    assert clusters[0, 1] != clusters[1, 1]
    assert not any(is_alive(int(pid)) for pid in read_notes(tmp_path, "pid").values())
    log = next((tmp_path / ".stoker" / "jobs").glob("*/worker-0.log")).read_text()
    assert "--- restart 1 ---" in log


def test_a_fault_that_stays_ends_the_job_with_its_exit_code(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "sys.exit(7 if rank else 0)\n", "-n", "2", "--max-restarts", "1")
    assert outcome.code == 7
    assert "stoker: worker 1 ended with exit code 7; giving up after 1 restart" in outcome.stderr
    assert {restart for restart, _ in read_notes(tmp_path, "pid")} == {0, 1}


def test_the_worker_that_died_is_blamed_not_its_peers(tmp_path: Path) -> None:
    program = """
if rank == 1:
    while len(list(pathlib.Path().glob("pid-0-?"))) < 2: time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    try:
        os.kill(int(pathlib.Path("pid-0-1").read_text()), 0)
    except ProcessLookupError:
        sys.exit(1)
    except FileNotFoundError:
        pass
"""
    outcome = launch(tmp_path, program, "-n", "2", "--max-restarts", "0")
    assert (outcome.code, outcome.stderr.splitlines()[-1]) == (
        128 + signal.SIGKILL,
        "stoker: worker 1 was killed by SIGKILL; giving up",
    )


def test_preempted_workers_start_again_and_are_not_counted(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "sys.exit(75 if restart < 2 else 0)\n", "-n", "2", "--max-restarts", "0")
    assert outcome.code == 0
    assert outcome.stderr.count("the workers were preempted; restarting all workers") == 2


def test_a_stopped_worker_is_found_by_its_heartbeat(tmp_path: Path) -> None:
    # Its thread needs Python's lock for a first heartbeat; without one it would count as never started.
    program = """
if restart == 0:
    time.sleep(1)
    if rank == 0: os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(1000)
"""
    outcome = launch(tmp_path, program, "-n", "2", *QUICK)
    assert outcome.code == 0
    assert "worker 0 sent no heartbeat for 1" in outcome.stderr
    assert "s; its process is stopped; restarting all workers (1 of 3)" in outcome.stderr


def test_workers_frozen_together_with_the_job_are_not_blamed(tmp_path: Path) -> None:
    program = """
while not pathlib.Path("go").exists(): time.sleep(0.01)
"""
    with start_job(tmp_path, program, "-n", "2", *QUICK) as job:
        workers = [int(pid) for pid in wait_for_notes(tmp_path, "pid", 2).values()]
        agent = int(Path(f"/proc/{workers[0]}/stat").read_text().rpartition(")")[2].split()[1])
        frozen = [job.pid, agent, *workers]
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        # Longer than the heartbeat limit: this test is about time.
        time.sleep(3)
        for process in frozen:
            os.kill(process, signal.SIGCONT)
        time.sleep(1)
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0
    assert "restarting" not in stderr


def test_a_worker_that_does_not_join_is_named_at_the_deadline(tmp_path: Path) -> None:
    program = """
if rank != 1: door = listen()
time.sleep(1000)
"""
    outcome = launch(tmp_path, program, "-n", "3", "--start-deadline", "1s", "--max-restarts", "0")
    assert outcome.code == 1
    assert outcome.stderr.splitlines()[-1] == (
        "stoker: worker 1 did not join; workers 0 and 2 waited 1 s "
        "(raise --start-deadline if it is just slow to start); giving up"
    )


# What TensorFlow does while it waits for the others: a call into C that holds Python's lock, which stops the heartbeat.
KEEP_LOCK = """
import ctypes
def keep_lock(seconds): ctypes.PyDLL(None).sleep(seconds)
"""


def test_a_worker_that_waits_for_a_slow_one_is_not_blamed(tmp_path: Path) -> None:
    program = f"""{KEEP_LOCK}
if rank == 0: door = listen()
keep_lock(4)
if rank == 1: door = listen()
note("joined")
while not pathlib.Path(f"joined-{{restart}}-{{1 - rank}}").exists(): time.sleep(0.01)
"""
    outcome = launch(tmp_path, program, "-n", "2", *QUICK, "--max-restarts", "0")
    assert (outcome.code, "heartbeat" in outcome.stderr) == (0, False)


def test_a_worker_that_hangs_once_all_have_joined_is_found(tmp_path: Path) -> None:
    program = f"""{KEEP_LOCK}
door = listen()
note("joined")
while len(list(pathlib.Path().glob("joined-*"))) < 2: time.sleep(0.01)
if rank == 1: keep_lock(1000)
time.sleep(1000)
"""
    outcome = launch(tmp_path, program, "-n", "2", *QUICK, "--max-restarts", "0")
    assert outcome.code == 1
    assert "stoker: worker 1 sent no heartbeat for" in outcome.stderr.splitlines()[-1]


def set_place(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the next job worker 0 of two with TF_CONFIG; return the address of the other, which nobody starts."""
    own, other = (f"127.0.0.1:{port}" for port in ports.find_free_ports(2))
    config = {"cluster": {"worker": [own, other]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    return other


def test_a_peer_that_the_scheduler_starts_may_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_place(monkeypatch)
    outcome = launch(
        tmp_path, f"{KEEP_LOCK}\ndoor = listen()\nkeep_lock(4)\n", "--engine", "tf-config", *QUICK
    )
    assert (outcome.code, "heartbeat" in outcome.stderr) == (0, False)


def test_a_peer_that_the_scheduler_starts_is_named_if_it_never_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = set_place(monkeypatch)
    program = f"{KEEP_LOCK}\ndoor = listen()\nkeep_lock(1000)\n"
    outcome = launch(tmp_path, program, "--engine", "tf-config", *QUICK, "--start-deadline", "2s")
    assert outcome.code == 1
    assert outcome.stderr.splitlines()[-1] == (
        f"stoker: worker 1 at {other} did not join; worker 0 waited 2 s "
        "(raise --start-deadline if it is just slow to start); giving up"
    )


@contextmanager
def inherited_hangup(handler: signal.Handlers) -> Iterator[None]:
    """Have jobs that start within the block ignore SIGHUP, as with `nohup`, or not, though the tests do."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("warning", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_a_warning_reaches_all_workers_and_their_answer_is_the_jobs(
    tmp_path: Path, warning: signal.Signals
) -> None:
    # Not sys.exit: Python may be in code that ignores SystemExit, such as a callback of the garbage collector.
    program = """
signal.signal(signal.SIGTERM, lambda *_: os._exit(75))
note("ready")
time.sleep(1000)
"""
    with inherited_hangup(signal.SIG_DFL), start_job(tmp_path, program, "-n", "2") as job:
        wait_for_notes(tmp_path, "ready", 2)
        job.send_signal(warning)
        _, stderr = job.communicate()
    assert (job.returncode, stderr.splitlines()[-1]) == (
        75,
        "stoker: the workers saved and exited; run the same command again to continue",
    )


def test_a_closed_terminal_does_not_end_a_job_under_nohup(tmp_path: Path) -> None:
    program = """
signal.signal(signal.SIGTERM, lambda *_: note("asked"))
note("ready")
while not pathlib.Path("go").exists(): time.sleep(0.01)
os._exit(75)
"""
    with inherited_hangup(signal.SIG_IGN), start_job(tmp_path, program, "-n", "1") as job:
        wait_for_notes(tmp_path, "ready", 1)
        job.send_signal(signal.SIGHUP)
        # If it had heard the first signal, the second would end the worker at once.
        job.send_signal(signal.SIGTERM)
        wait_until(lambda: job.poll() is not None or bool(read_notes(tmp_path, "asked")))
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert (job.returncode, "run the same command again to continue" in stderr) == (75, True), stderr


def test_ctrl_c_twice_ends_workers_that_ignore_it(tmp_path: Path) -> None:
    program = """
signal.signal(signal.SIGINT, lambda *_: note("heard"))
note("ready")
while True: time.sleep(1000)
"""
    with start_job(tmp_path, program, "-n", "2") as job:
        pids = [int(pid) for pid in wait_for_notes(tmp_path, "pid", 2).values()]
        wait_for_notes(tmp_path, "ready", 2)
        job.send_signal(signal.SIGINT)
        wait_for_notes(tmp_path, "heard", 2)
        job.send_signal(signal.SIGINT)
        _, stderr = job.communicate()
    assert (job.returncode, stderr.splitlines()[-1]) == (130, "stoker: ended by SIGINT")
    assert not any(is_alive(pid) for pid in pids)


def test_no_worker_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    program = """
import subprocess
note("child", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid)
time.sleep(1000)
"""
    with start_job(tmp_path, program, "-n", "2") as job:
        wait_for_notes(tmp_path, "child", 2)
        pids = [int(pid) for word in ("pid", "child") for pid in read_notes(tmp_path, word).values()]
        assert all(is_alive(pid) for pid in pids)
        job.kill()
        wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_the_number_of_workers_follows_the_machines(tmp_path: Path) -> None:
    program = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
note("size", size)
while not pathlib.Path("go").exists(): time.sleep(0.01)
"""
    rooms = tmp_path / "rooms"
    rooms.write_text("localhost:2\n")
    with start_job(tmp_path, program, "-n", "1:3", "--discover", "cat rooms", "--max-restarts", "0") as job:
        wait_for_notes(tmp_path, "size", 2)
        rooms.write_text("localhost:8\n")
        wait_for_notes(tmp_path, "size", 3, restart=1)
        rooms.write_text("localhost:1\n")
        wait_for_notes(tmp_path, "size", 1, restart=2)
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0
    assert read_notes(tmp_path, "size") == {
        **{(0, rank): "2" for rank in range(2)},
        **{(1, rank): "3" for rank in range(3)},
        (2, 0): "1",
    }
    assert stderr.count("the available machines have changed; restarting all workers") == 2


def test_a_job_keeps_its_machines_when_discovery_fails(tmp_path: Path) -> None:
    script = tmp_path / "machines.sh"
    script.write_text("#!/bin/sh\ntest -e pid-0-0 || exec echo localhost:1\necho x >> failures\nexit 3\n")
    script.chmod(0o755)
    program = "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
    with start_job(tmp_path, program, "-n", "1:2", "--discover", "./machines.sh") as job:
        # When the command runs a second time, its first failure has been reported.
        failures = tmp_path / "failures"
        wait_until(lambda: failures.exists() and failures.read_text().count("x") >= 2)
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0
    line = "failed with exit code 3: no error message; keeping the current machines"
    assert stderr.count(line) == 1


WRONG_ARGUMENT = """
from stoker.errors import {error}
if rank == 1:
    raise {error}("epochs=2.5 must be a whole number")
while True: time.sleep(0.05)
"""


def test_a_wrong_argument_is_not_tried_again(tmp_path: Path) -> None:
    outcome = launch(tmp_path, WRONG_ARGUMENT.format(error="ArgumentError"), "-n", "2", "--quiet")
    assert outcome.code == 1
    said = "stoker: worker 1 ended with exit code 1; not restarting, as it would end the same way again"
    wrong = "stoker.errors.ArgumentError: epochs=2.5 must be a whole number"
    assert outcome.stderr.splitlines()[-1] == f"{said}: {wrong}"
    assert {restart for restart, _ in read_notes(tmp_path, "pid")} == {0}


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (
            "print(modle)",
            "ended with exit code 1; not restarting, as it would end the same way again: NameError: name 'modle' is",
        ),
        (
            "exec('if rank = 1: pass')",
            "exit code 1; not restarting, as it would end the same way again: SyntaxError: ",
        ),
        ("import tensrflow", "the same way again: ModuleNotFoundError: No module named 'tensrflow'"),
        (
            "import argparse; argparse.ArgumentParser('fly').parse_args(['--epoch'])",
            "code 2; not restarting, as it would end the same way again: fly: error: unrecognized arguments: --epoch",
        ),
    ],
)
def test_a_mistake_in_the_program_is_not_tried_again(tmp_path: Path, mistake: str, line: str) -> None:
    outcome = launch(tmp_path, f"{mistake}\n", "-n", "2", "--quiet")
    assert outcome.code in (1, 2)
    assert line in outcome.stderr.splitlines()[-1]
    assert "restarting all workers" not in outcome.stderr


def test_the_same_error_before_any_step_is_tried_once_more(tmp_path: Path) -> None:
    outcome = launch(tmp_path, "raise ValueError('no such column')\n", "--quiet")
    assert "worker 0 ended with exit code 1; restarting all workers (1 of 3)" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].endswith(
        "not restarting, as it would end the same way again: ValueError: no such column"
    )
    assert {restart for restart, _ in read_notes(tmp_path, "pid")} == {0, 1}


def test_after_a_step_the_same_error_may_come_from_a_fault() -> None:
    errors = RoundErrors()
    code = ["Traceback (most recent call last):", "    raise KeyError(1)", "KeyError: 1"]
    errors.read_output(0, code)
    assert errors.find_error(0, 1) == "KeyError: 1"
    assert errors.find_error(0, 3) is errors.find_error(1, 1) is None
    assert is_hopeless(1, errors, "KeyError: 1", "KeyError: 1")
    assert not is_hopeless(1, errors, "KeyError: 1", "KeyError: 2")
    assert not is_hopeless(1, errors, "ConnectionError: gone", "ConnectionError: gone")
    assert not is_hopeless(1, errors, "ImportError: busy", None)
    errors.read_events(encode(StepsDone(1, "run", 0, 5, 0.1)).decode())
    assert not is_hopeless(1, errors, "KeyError: 1", "KeyError: 1")
    assert not is_hopeless(0, errors, "NameError: x", None)
    alone = RoundErrors()
    alone.read_output(0, ["training", "NameError: only a message"])
    assert alone.find_error(0, 1) is None


def test_what_may_be_there_next_time_is_tried_again(tmp_path: Path) -> None:
    program = WRONG_ARGUMENT.format(error="UnavailableError")
    outcome = launch(tmp_path, program, "-n", "2", "--max-restarts", "1")
    assert "giving up after 1 restart" in outcome.stderr
    assert {restart for restart, _ in read_notes(tmp_path, "pid")} == {0, 1}
