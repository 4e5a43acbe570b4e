"""What is logged is in the store, once, whatever the store does meanwhile."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stoker.tracking.store import address, delivery, opening, queries, spool, writer
from stoker.tracking.store.address import Address
from stoker.tracking.store.applying import apply
from stoker.tracking.store.connections import StoreError
from stoker.tracking.store.events import Batch, Event, LedgerMeasured, RunChanged, ValuesLogged
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from tests.support import wait_until
from tests.tracking.store.databases import Server


@pytest.fixture(autouse=True)
def _repeated_at_once(own_writers: dict[Address, StoreWriter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed attempt is repeated at once."""
    monkeypatch.setattr(delivery, "_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(delivery, "_FIRST_PAUSE_S", 0.05)


def begun(store: Address) -> TrackedRun:
    return TrackedRun("a run", {"rate": 0.1}, store=store, kind="track")


def values(store: Address, run: str, name: str = "loss") -> list[float]:
    with queries.open_reader(store) as reader:
        return [value for _, _, value in reader.points(run, name)]


def spooled(store: Address) -> list[Path]:
    return [path for place in spool.list_directories(store) for path in place.glob("*.jsonl")]


def test_values_come_back_as_they_were_logged(store: Address) -> None:
    logged = [1.5, math.nan, math.inf, -math.inf, 0.1 + 0.2, 5e-324, 1.7976931348623157e308]
    run = begun(store)
    for step, value in enumerate(logged):
        run.log(step, loss=value)
    run.log(2**40, {"odd name/ÄÖ \x00 '\"": 1})
    run.flush()
    assert repr(values(store, run.id)) == repr(logged)
    with queries.open_reader(store) as reader:
        (row,) = reader.runs(run.id)
    loss = row.series["loss"]
    assert (loss.count, loss.min, loss.max, loss.last_step) == (len(logged), -math.inf, math.inf, 6)
    assert row.parameters == {"rate": 0.1}
    assert sorted(row.series) == ["loss", "odd name/ÄÖ \ufffd '\""]


def test_a_series_of_nothing_but_nan_has_no_least(store: Address) -> None:
    run = begun(store)
    run.log(0, loss=math.nan)
    run.flush()
    with queries.open_reader(store) as reader:
        series = reader.runs(run.id)[0].series["loss"]
    assert math.isnan(series.last)
    assert (series.min, series.max) == (None, None)
    run.log(1, loss=3)
    run.flush()
    with queries.open_reader(store) as reader:
        series = reader.runs(run.id)[0].series["loss"]
    assert (series.last, series.min, series.max) == (3, 3, 3)


def test_a_batch_is_applied_once(store: Address) -> None:
    connection = opening.connect(store)
    batch = Batch("me", 1, [ValuesLogged("r", step, 0.0, {"loss": 1.0}) for step in range(3)])
    for _ in range(3):
        apply(connection, batch)
    assert connection.execute("SELECT count(*) FROM points") == [(3,)]


def test_a_batch_is_applied_whole_or_not_at_all(store: Address) -> None:
    connection = opening.connect(store)
    events: list[Event] = [ValuesLogged("r", 0, 0.0, {"loss": 1.0}), RunChanged("r", {"steps": "many"})]
    if connection.dialect == "sqlite":
        events[1] = LedgerMeasured("r", {"input": None})  # type: ignore[dict-item]
    with pytest.raises(StoreError):
        apply(connection, Batch("me", 1, events))
    assert connection.execute("SELECT count(*) FROM points") == [(0,)]
    apply(connection, Batch("me", 1, events[:1]))
    assert connection.execute("SELECT count(*) FROM points") == [(1,)]


def test_threads_that_log_at_once_lose_nothing(store: Address) -> None:
    """The interpreter changes threads as often as it can, also inside the writer."""
    run = begun(store)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def log(thread: int) -> None:
            for step in range(1500):
                run.log(step, {f"of/{thread}": float(step)})

        threads = [threading.Thread(target=log, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            run.flush()
        run.flush()
    finally:
        sys.setswitchinterval(before)
    for number in range(4):
        assert values(store, run.id, f"of/{number}") == [float(step) for step in range(1500)]


LOG = """
import sys
import stoker
with stoker.track("worker", params={"number": int(sys.argv[2])}, store=sys.argv[1]) as run:
    for step in range(400):
        run.log(step, loss=step + int(sys.argv[2]) / 10)
"""


def url_of(store: Address) -> str:
    return store.url or str(store)


def test_eight_processes_on_a_fresh_store_lose_nothing(store: Address) -> None:
    started = [subprocess.Popen([sys.executable, "-c", LOG, url_of(store), str(n)]) for n in range(8)]
    assert [process.wait() for process in started] == [0] * 8
    with queries.open_reader(store) as reader:
        runs = reader.runs()
        assert sorted(row.parameters["number"] for row in runs) == list(range(8))
        for row in runs:
            number = row.parameters["number"]
            logged = [value for _, _, value in reader.points(row.id, "loss")]
            assert logged == [step + number / 10 for step in range(400)]
            assert row.state == "finished"


LOG_FOREVER = """
import sys
import stoker
from stoker.tracking.store import writer
writer.INTERVAL_S = 0.01
run = stoker.track("killed", store=sys.argv[1])
step = 0
while True:
    for _ in range(200):
        run.log(step, loss=float(step))
        step += 1
    run.flush()
    print(step, flush=True)
"""


def test_what_was_committed_survives_a_kill(store: Address) -> None:
    chance = random.Random(7)
    for _ in range(3):
        command = [sys.executable, "-c", LOG_FOREVER, url_of(store)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        committed = 0
        for _ in range(chance.randrange(1, 6)):
            committed = int(process.stdout.readline())
        # At any moment of the rounds that follow.
        threading.Event().wait(chance.random() / 50)
        process.kill()
        said = [int(line) for line in process.stdout.read().split()]
        process.wait()
        with queries.open_reader(store) as reader:
            logged = [step for step, _, _ in reader.points(reader.resolve(None), "loss")]
        assert logged == list(range(len(logged)))
        assert len(logged) >= max([committed, *said])


def test_a_forked_child_logs_for_itself(store: Address) -> None:
    run = begun(store)
    run.log(0, loss=0.0)
    child = os.fork()
    if child == 0:
        run.log(1, loss=1.0)
        run.flush()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run.flush()
    assert sorted(values(store, run.id)) == [0.0, 1.0]


def test_a_locked_file_is_waited_for_in_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    monkeypatch.setattr(opening.connect, "__defaults__", (0.05,))
    run = begun(store)
    run.flush()
    other = opening.connect(store)
    with other.transaction():
        for step in range(10):
            run.log(step, loss=float(step))
            run.flush()
        assert spooled(store)
    said = ""

    def is_back() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "stoker: the store is back" in said

    # The line comes last, when everything is written.
    wait_until(is_back)
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert values(store, run.id) == [float(step) for step in range(10)]
    assert spooled(store) == []
    said += capfd.readouterr().err
    assert said.count("database is locked") == 1
    assert said.count("stoker: the store is back") == 1


def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = address.parse(f"sqlite:///{small_disk / 'stoker.db'}")
    run = begun(store)
    run.flush()
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    for step in range(3000):
        run.log(step, loss=float(step))
    run.flush()
    assert any(path.is_relative_to(tmp_path / "state") for path in spooled(store))
    filler.unlink()
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert values(store, run.id) == [float(step) for step in range(3000)]
    assert spooled(store) == []
    writer.writer_for(store).close()


def test_a_read_only_disk_loses_nothing(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = address.parse(f"sqlite:///{small_disk / 'stoker.db'}")
    run = begun(store)
    run.log(0, loss=0.0)
    run.flush()
    writer.writer_for(store).delivery._disconnect()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    run.log(1, loss=1.0)
    run.flush()
    assert writer.writer_for(store).is_waiting()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert values(store, run.id) == [0.0, 1.0]
    writer.writer_for(store).close()


def test_a_file_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'deep' / 'stoker.db'}")
    run = begun(store)
    run.log(0, loss=0.0)
    run.flush()
    for path in (tmp_path / "deep").glob("stoker.db*"):
        path.unlink()
    run.log(1, loss=1.0)
    run.flush()
    assert values(store, run.id) == [1.0]
    with queries.open_reader(store) as reader:
        assert reader.runs(run.id)[0].name == "a run"


def test_a_server_that_restarts_loses_nothing(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store = address.parse(postgresql.create())
    run = begun(store)
    step = 0
    for how in ("fast", "immediate"):
        for _ in range(200):
            run.log(step, loss=float(step))
            step += 1
        run.flush()
        postgresql.stop(how)
        for _ in range(200):
            run.log(step, loss=float(step))
            step += 1
        run.flush()
        assert spooled(store)
        postgresql.start()
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert values(store, run.id) == [float(number) for number in range(step)]
    assert "stoker@127.0.0.1" in capfd.readouterr().err


def test_a_server_that_hangs_does_not_hold_up_the_end(
    postgresql: Server, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(opening.connect, "__defaults__", (1.0,))
    store = address.parse(postgresql.create())
    run = begun(store)
    run.log(0, loss=0.0)
    run.flush()
    other = opening.connect(store, patience_s=60)
    with other.transaction():
        # As a table that somebody else holds: the commit of the batch does not end.
        other.execute("LOCK TABLE points")
        run.log(1, loss=1.0)
        writing = writer.writer_for(store)
        writing._wake.set()
        wait_until(lambda: bool(writing.delivery.unsent))
        writing.close(timeout_s=0.2)
        assert [path.name.endswith(".late.jsonl") for path in spooled(store)] == [True]
    # Whether the batch that hung got through or not: it is there once.
    assert values(store, run.id) == [0.0, 1.0]
    assert spooled(store) == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_commit_whose_answer_is_lost_is_made_once(store: Address, after: bool, monkeypatch: Any) -> None:
    """The connection breaks just before the commit, or just after it: the writer cannot know which."""
    run = begun(store)
    run.flush()
    connection = writer.writer_for(store).delivery._connection
    assert connection is not None
    whole = connection.transaction
    failed: list[bool] = []

    @contextmanager
    def breaking() -> Iterator[None]:
        with whole():
            yield
            if not failed and not after:
                failed.append(True)
                raise StoreError("the connection is gone")
        if not failed:
            failed.append(True)
            raise StoreError("the connection is gone")

    monkeypatch.setattr(connection, "transaction", breaking)
    for step in range(5):
        run.log(step, loss=float(step))
    run.flush()
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert failed
    assert values(store, run.id) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_spool_left_behind_is_written_by_the_next(store: Address) -> None:
    """Half a line at its end is of a batch that nobody was told is kept."""
    left = spool.Spool(store, "1-gone")
    for number in (1, 2):
        left.append(Batch("1-gone", number, [ValuesLogged("r", number, 0.0, {"loss": float(number)})]))
    left.release()
    (path,) = spooled(store)
    with path.open("ab") as file:
        file.write(b'["1-gone",3,[["values","r"')
    assert values(store, "r") == [1.0, 2.0]
    assert spooled(store) == []


DAMAGED = (
    b"",
    b"\x00\xff garbage",
    b"[" * 100_000,
    b'["1-gone",2,[["values","r"',
    b'["1-gone",2,[["_init__","r"]]]',
    b'["1-gone",2,[["ledger","r",{"input":null}]]]',
    b'["1-gone",2,[["values","r",1,0.0,{"loss":"high"}]]]',
    b'["1-gone",2,[["values","r",99999999999999999999,0.0,{"loss":1.0}]]]',
    b'["1-gone",2,[["artifact","r","makes",{}]]]',
    b'["1-gone",2,[["run","r",{"name":"x"}]]]',
)


def test_damaged_lines_of_a_spool_are_moved_aside_and_named(store: Address, capfd: Any) -> None:
    left = spool.Spool(store, "1-gone")
    left.append(Batch("1-gone", 1, [ValuesLogged("r", 1, 0.0, {"loss": 1.0})]))
    (path,) = spooled(store)
    left.release()
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in DAMAGED))
    again = spool.Spool(store, "1-gone")
    again.append(Batch("1-gone", 3, [ValuesLogged("r", 3, 0.0, {"loss": 3.0})]))
    again.release()
    assert values(store, "r") == [1.0, 3.0]
    assert spooled(store) == []
    aside = path.with_name(f"{path.name}.damaged")
    assert aside.read_bytes().split(b"\n")[:-1] == list(DAMAGED)
    assert aside.stat().st_mode & 0o777 == 0o600
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"stoker: {len(DAMAGED)} lines of the spool could not be read and went to {aside}")
    assert values(store, "r") == [1.0, 3.0]


def test_a_batch_that_the_store_refuses_does_not_keep_out_the_next(store: Address, capfd: Any) -> None:
    run = begun(store)
    run.put(LedgerMeasured(run.id, {"input": None}))  # type: ignore[dict-item]
    run.flush()
    run.log(1, loss=1.0)
    run.flush()
    wait_until(lambda: not writer.writer_for(store).is_waiting())
    assert values(store, run.id) == [1.0]
    assert ".damaged" in capfd.readouterr().err


def test_a_spool_in_use_is_left_alone(store: Address) -> None:
    script = """
import sys
from stoker.tracking.store import address, spool
from stoker.tracking.store.events import Batch, ValuesLogged
own = spool.Spool(address.parse(sys.argv[1]), "1-alive")
own.append(Batch("1-alive", 1, [ValuesLogged("r", 1, 0.0, {"loss": 1.0})]))
print("ready", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, url_of(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert values(store, "r") == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert values(store, "r") == [1.0]


def test_a_store_that_cannot_be_had_never_stops_a_program(
    tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    store = address.parse("postgresql://nobody@127.0.0.1:1/none")
    run = begun(store)
    run.log(0, loss=1.0)
    run.finish()
    writer.writer_for(store).close()
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2
    assert "the program continues" in said[0]
    assert "the next run writes it" in said[1]
    assert len(spooled(store)) == 1
