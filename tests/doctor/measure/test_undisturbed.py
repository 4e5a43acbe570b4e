"""The user's program comes first: under `stoker run` it computes, prints and ends as it would by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.tracking.store import address, queries
from tests.support import (
    HANGS_S,
    Outcome,
    before_ledger,
    environment,
    last_record,
    quiet,
    run,
    run_plain,
    run_stoker,
    wait_until,
    write_program,
)

pytest.importorskip("tensorflow")

LOOP = """
import sys, hashlib
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(7)
weights = tf.Variable(tf.random.normal([20, 5]))
dataset = tf.data.Dataset.from_tensor_slices(np.random.rand(640, 20).astype("f4")).shuffle(640).batch(32)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)) + tf.random.uniform([]))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss

for epoch in range(3):
    for batch in dataset:
        loss = step(batch)
        if float(loss) < 0:
            break
    print(epoch, float(loss), np.mean(weights))
print(hashlib.sha256(weights.numpy().tobytes()).hexdigest())
print(sys.argv, __name__, __file__, sys.path[0])
sys.exit(3)
"""

FIT = """
import hashlib
import keras, numpy as np
keras.utils.set_random_seed(7)
layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.3), keras.layers.Dense(1)]
model = keras.Sequential(layers)
model.compile("adam", "mse", metrics=["mae"])
x, y = np.random.rand(500, 8), np.random.rand(500, 1)
history = model.fit(x, y, epochs=3, validation_split=0.2, verbose=2)
print(history.history)
print(model.predict(x[:5], verbose=0))
print(hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
"""

CRASH = """
import warnings
import keras, numpy as np, tensorflow as tf
class Boom(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            raise RuntimeError("boom")
@tf.function
def checked(x):
    tf.debugging.assert_less(x, 5.0)
    return x
try:
    checked(tf.constant(9.0))
except tf.errors.InvalidArgumentError as error:
    print(error)
try:
    float(tf.constant([1.0, 2.0]))
except TypeError:
    import traceback; traceback.print_exc()
warnings.warn("a warning of the program's")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((320, 3)), np.ones((320, 1)), verbose=0, callbacks=[Boom()])
"""


@pytest.fixture(autouse=True)
def _with_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it: keeping runs must not disturb either."""
    monkeypatch.delenv("STOKER_STORE")


def without_timings(text: str) -> str:
    """Keras prints how long an epoch took."""
    return "\n".join(line for line in text.splitlines() if "/step" not in line)


@pytest.mark.parametrize("program", [LOOP, FIT], ids=["loop", "fit"])
def test_same_bits_same_stdout_same_exit_code(tmp_path: Path, program: str) -> None:
    write_program(tmp_path, program)
    plain = run_plain(tmp_path, "train.py", "--epochs", "3", "-m")
    measured = run_stoker(tmp_path, "train.py", "--epochs", "3", "-m")
    assert without_timings(measured.stdout) == without_timings(plain.stdout)
    assert measured.code == plain.code
    assert before_ledger(measured.stderr) == plain.stderr.rstrip("\n")
    assert measured.record is not None
    assert measured.record["exit_code"] == plain.code
    assert sum(measured.record["accounts"].values()) == pytest.approx(measured.record["wall_s"], rel=0.01)
    assert measured.record["steps"] > 10
    assert measured.record["notes"] == []


@pytest.mark.slow
def test_a_crash_looks_the_same(tmp_path: Path) -> None:
    write_program(tmp_path, CRASH)
    plain, measured = run_plain(tmp_path, "train.py"), run_stoker(tmp_path, "train.py")
    assert plain.code == measured.code == 1
    assert measured.stdout == plain.stdout
    assert before_ledger(measured.stderr) == plain.stderr.rstrip("\n")
    assert "exit code 1" in " ".join(measured.stderr.split())


@pytest.mark.slow
def test_a_module_runs_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    write_program(
        package, "import sys, tensorflow\nprint(__name__, __package__, __spec__.name, sys.argv[1:])", "job.py"
    )
    plain, measured = (
        run_plain(tmp_path, "-m", "package.job", "a"),
        run_stoker(tmp_path, "-m", "package.job", "a"),
    )
    assert measured.stdout == plain.stdout == "__main__ package package.job ['a']\n"
    assert measured.code == plain.code == 0


PROCESSES = """
import atexit, multiprocessing, os, subprocess, sys, threading
import tensorflow as tf

def child(queue):
    queue.put(sorted(name for name in os.environ if "STOKER" in name))
    queue.put(threading.active_count())

if __name__ == "__main__":
    print(os.environ.get("PYTHONPATH"), [name for name in os.environ if "STOKER" in name])
    print(threading.active_count(), sys.modules["__main__"].__spec__)
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(method, queue.get(), queue.get())
        process.join()
        print(process.exitcode)
    asked = "import sys; print('stoker' in str(sys.modules))"
    print(subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True).stdout)
    thread = threading.Thread(target=lambda: print(float(tf.constant(2.0))))
    thread.start()
    thread.join()
    atexit.register(print, "at exit")
"""


@pytest.mark.slow
def test_processes_threads_and_exit_handlers(tmp_path: Path) -> None:
    write_program(tmp_path, PROCESSES)
    plain, measured = run_plain(tmp_path, "train.py"), run_stoker(tmp_path, "train.py")
    assert measured.stdout == plain.stdout
    assert "at exit" in measured.stdout
    assert measured.code == plain.code == 0
    # One record: the children left none.
    assert len(list((tmp_path / ".stoker" / "runs").iterdir())) == 1


ENDLESS = """
import os, time
import tensorflow as tf
count = tf.Variable(0.0)
@tf.function
def step(x):
    return count.assign_add(x)
# Sleeps most of the time, and makes its constant once: TensorFlow does not always survive a KeyboardInterrupt.
# One inside tf.constant may end it with SIGSEGV, one inside a compiled call may become a KeyError.
one = tf.constant(1.0)
for number in range(10**9):
    step(one)
    time.sleep(0.02)
    if number == 50:
        print("ready", os.getpid(), flush=True)
"""


def saved_steps(directory: Path) -> int:
    record = last_record(directory)
    return int(record["steps"]) if record else 0


def interrupted(directory: Path, *command: str, sent: signal.Signals) -> Outcome:
    write_program(directory, ENDLESS)
    process = subprocess.Popen(
        [sys.executable, *command, "train.py"],
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests in the background had SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline().split()[1])
    if command:
        wait_until(lambda: saved_steps(directory) > 50)
    process.send_signal(sent)
    stdout, stderr = process.communicate(timeout=HANGS_S)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    return Outcome(process.returncode, stdout, quiet(stderr))


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_the_same_way_and_the_ledger_is_kept(tmp_path: Path, sent: signal.Signals) -> None:
    plain = interrupted(tmp_path, sent=sent)
    measured = interrupted(tmp_path, "-m", "stoker", "run", sent=sent)
    assert measured.code == plain.code == -sent
    if sent == signal.SIGINT:
        assert before_ledger(measured.stderr).endswith("KeyboardInterrupt")
        assert "stoker" not in before_ledger(measured.stderr)
    assert "launching work from Python" in measured.stderr
    record = last_record(tmp_path)
    assert record is not None
    assert record["exit_code"] == 128 + sent
    assert record["steps"] > 50
    with queries.open_reader(address.parse(f"sqlite:///{tmp_path / '.stoker' / 'stoker.db'}")) as reader:
        (row,) = reader.runs()
        state = "interrupted" if sent == signal.SIGINT else "failed"
        assert (row.id, row.state, row.exit_code) == (record["id"], state, 128 + sent)
        assert reader.ledger(row.id) == record["accounts"]
        assert [one["kind"] for one in reader.findings(row.id)] == [one["kind"] for one in record["findings"]]


@pytest.mark.slow
def test_after_kill_9_the_last_save_is_there(tmp_path: Path) -> None:
    assert interrupted(tmp_path, "-m", "stoker", "run", sent=signal.SIGKILL).code == -signal.SIGKILL
    record = last_record(tmp_path)
    assert record is not None
    assert record["state"] == "running"
    assert record["exit_code"] is None
    assert record["steps"] > 50
    report = run([sys.executable, "-m", "stoker", "report"], tmp_path)
    assert report.code == 0
    assert "did not end" in " ".join(report.stdout.split())


LEAVING = """
import json, os, pathlib
import tensorflow as tf
tf.constant(1.0)
def saved():
    records = [json.loads(path.read_text()) for path in pathlib.Path(".stoker/runs").glob("*.json")]
    return any(record["accounts"].get("startup", 0) > 0 for record in records)
while not saved():
    pass
os._exit(5)
"""


def test_a_program_that_leaves_without_a_word(tmp_path: Path) -> None:
    write_program(tmp_path, LEAVING)
    measured = run_stoker(tmp_path, "train.py")
    assert measured.code == 5
    assert measured.record is not None
    assert measured.record["exit_code"] == 5
    assert measured.record["accounts"]["startup"] > 0


def test_the_environments_own_sitecustomize_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write_program(own, "import builtins\nbuiltins.marker = 'mine'\n", "sitecustomize.py")
    write_program(tmp_path, "import os\nprint(marker, os.environ['PYTHONPATH'])\n")
    monkeypatch.setenv("PYTHONPATH", str(own))
    plain, measured = run_plain(tmp_path, "train.py"), run_stoker(tmp_path, "train.py")
    assert measured.stdout == plain.stdout == f"mine {own}\n"


BROKEN_PROBE = """
import tensorflow as tf
from stoker.doctor.probes.recorder import Recorder
def broken(*args):
    raise RuntimeError("broken on purpose")
Recorder.tally = broken
for _ in range(30):
    value = float(tf.constant(2.0))
print(value)
"""


def test_a_fault_in_a_probe_never_reaches_the_program(tmp_path: Path) -> None:
    write_program(tmp_path, BROKEN_PROBE)
    measured = run_stoker(tmp_path, "train.py")
    assert (measured.code, measured.stdout) == (0, "2.0\n")
    assert measured.stderr.count("the host sync probe failed and was disabled") == 1


OWN_PROFILER = """
import sys, pathlib
import tensorflow as tf
step = tf.function(lambda x: tf.linalg.matmul(x, x))
x = tf.random.normal([200, 200])
for _ in range(300):
    step(x)
with tf.profiler.experimental.Profile("logs"):
    for _ in range(300):
        step(x)
for _ in range(300):
    step(x)
print(len(list(pathlib.Path("logs").rglob("*.xplane.pb"))))
"""


@pytest.mark.slow
def test_the_programs_own_profile_is_written(tmp_path: Path) -> None:
    write_program(tmp_path, OWN_PROFILER)
    measured = run_stoker(tmp_path, "train.py")
    assert (measured.code, measured.stdout) == (0, "1\n")
