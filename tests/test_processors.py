"""What a process got of the processors, and waited for."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading

from stoker.processors import ProcessorUse, count_free_processors, main_thread_wait_ns
from tests.support import wait_until

BLOCK = b"x" * 2**20


def test_work_of_all_threads_counts() -> None:
    before = ProcessorUse.up_to_now()
    threads = [threading.Thread(target=lambda: [hashlib.sha256(BLOCK) for _ in range(20)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    use = ProcessorUse.up_to_now().since(before)
    assert use.ran > 0
    assert use.waited >= 0
    assert use.all_waited >= 0


def test_a_thread_that_ended_takes_its_waits_along() -> None:
    assert ProcessorUse(5, 1, 10).since(ProcessorUse(3, 1, 12)) == ProcessorUse(2, 0, 0)


def test_other_programs_had_no_more_than_this_one_left_over() -> None:
    # Alone on one processor, a quarter of the time: the others had the rest.
    assert ProcessorUse(ran=25, all_waited=75).stretch(100, cores=1) == 4.0
    # Its own threads waited for each other.
    assert ProcessorUse(ran=100, all_waited=75).stretch(100, cores=1) == 1.0
    # Two threads at a time, each held up for as long as it ran.
    assert ProcessorUse(ran=100, all_waited=100).stretch(100, cores=2) == 2.0
    assert ProcessorUse().stretch(100, cores=2) == 1.0


def test_the_main_thread_never_waits_less_than_before() -> None:
    assert 0 <= main_thread_wait_ns() <= main_thread_wait_ns()


def test_there_is_always_a_processor_and_never_more_than_there_are() -> None:
    assert 1 <= count_free_processors() <= len(os.sched_getaffinity(0))


def test_threads_of_other_programs_take_processors() -> None:
    processors = len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * processors)]
    try:
        wait_until(lambda: count_free_processors() == 1)
    finally:
        for one in others:
            one.kill()
            one.wait()
