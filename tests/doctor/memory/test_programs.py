"""Programs on the software GPU: the book of each says who owns what.

A few run with the suite. `make memory-programs` runs all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support import no_software_gpu, run_plain, run_stoker

pytest.importorskip("tensorflow")
if missing := no_software_gpu():
    pytest.skip(missing, allow_module_level=True)

PROGRAMS = Path(__file__).parent / "programs"
ALL = bool(os.environ.get("STOKER_MEMORY_PROGRAMS"))
# What has no owner is at most this share of a peak: the allocator may round a large piece up by a third.
UNKNOWN = 0.25


@dataclass(frozen=True)
class Expected:
    """What the book of a program says: the role of the largest owner, and bytes of weights in each layer or line."""

    program: str
    roles: tuple[str, ...]
    weights: dict[str, int]
    devices: int = 1


MLP = {
    "sequential/dense": 4 * 257 * 512,
    "sequential/dense_1": 4 * 513 * 512,
    "sequential/dense_2": 4 * 513 * 10,
}
CASES = (
    # Its peak is in the backward pass or in the update, where activations are gone: threads decide that.
    Expected("own_loop", ("optimizer", "gradients", "weights", "input"), MLP),
    Expected("eager_loop", ("gradients", "activations", "input", "weights"), {}),
    Expected("fit", ("gradients", "optimizer", "activations", "input"), {"sequential/dense": 4 * 32769 * 64}),
    Expected("gan", ("gradients", "optimizer", "input"), {"sequential_1/dense_2": 4 * 785 * 512}),
    Expected("rnn", ("activations", "gradients"), {"sequential/embedding": 4 * 1000 * 64}),
    Expected("transformer", ("activations", "gradients", "optimizer"), {"embedding": 4 * 1000 * 64}),
    Expected("embeddings", ("optimizer", "weights"), {"sequential/embedding": 4 * 20000 * 32}),
    Expected("mixed_precision", ("activations", "gradients"), {"sequential/dense": 4 * 32769 * 10}),
    Expected("two_devices", ("optimizer", "weights"), MLP, devices=2),
    Expected("validation", ("activations", "input"), {"sequential/dense": 4 * 17 * 10}),
)
QUICK = ("own_loop", "eager_loop")


@cache
def _record(directory: Path, program: str, devices: int) -> dict[str, Any]:
    (directory / "train.py").write_text((PROGRAMS / f"{program}.py").read_text(encoding="utf-8"))
    options = ("--experiments", "off", "--device", f"software-gpu:{devices}", "--device-memory", "2GiB")
    outcome = run_stoker(directory, "--memory", *options, "train.py")
    assert outcome.code == 0, outcome.stderr
    assert outcome.record is not None
    return {**outcome.record, "stderr": outcome.stderr}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def line_of(program: str, text: str) -> int:
    lines = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_the_owners_sum_to_the_counted_peak(directory: Path, case: Expected) -> None:
    if not ALL and case.program not in QUICK:
        pytest.skip("`make memory-programs` runs it")
    record = _record(directory, case.program, case.devices)
    books = record["memory_book"]["device"]
    assert [book["device"] for book in books] == [f"/GPU:{number}" for number in range(case.devices)]
    for book in books:
        held: defaultdict[str, int] = defaultdict(int)
        weights: defaultdict[str, int] = defaultdict(int)
        for owner in book["at_peak"]:
            held[owner["role"]] += owner["bytes"]
            if owner["role"] == "weights":
                weights[owner["layer"]] += owner["bytes"]
            assert owner["file"] in ("train.py", "")
        assert sum(held.values()) == pytest.approx(book["peak_bytes"], rel=0.02)
        assert held["other"] < UNKNOWN * book["peak_bytes"]
        for role in case.roles:
            assert held[role] > 0.01 * book["peak_bytes"] or case.program == "validation", (role, dict(held))
        for layer, size in case.weights.items():
            # Each variable takes whole pieces of 256 bytes; the allocator splits none that is less than twice as large.
            assert size <= weights[layer] <= size * 2 + 1024, (layer, size, dict(weights))
        assert book["capacity_bytes"] == 2 << 30
        assert max(sum(point["bytes"]) for point in book["curve"]) == book["peak_bytes"]


def test_a_graphs_owners_are_the_lines_of_its_layers_and_its_optimizer(directory: Path) -> None:
    (book,) = _record(directory, "own_loop", 1)["memory_book"]["device"]
    lines = {(owner["role"], owner["layer"]): owner["line"] for owner in book["at_peak"]}
    first, second = line_of("own_loop", "Dense(512"), line_of("own_loop", "Dense(512") + 1
    assert lines["weights", "sequential/dense"] == first
    assert lines["weights", "sequential/dense_1"] == second
    # Threads decide which gradients are there at the peak.
    gradients = {layer: line for (role, layer), line in lines.items() if role == "gradients" and layer}
    assert gradients
    assert gradients.get("sequential/dense", first) == first
    assert gradients.get("sequential/dense_1", second) == second
    assert lines["optimizer", ""] == line_of("own_loop", "Adam()")
    inputs = {owner["line"] for owner in book["at_peak"] if owner["role"] == "input"}
    assert line_of("own_loop", "from_tensor_slices") in inputs


def test_an_eager_ops_owner_is_the_line_that_ran_it(directory: Path) -> None:
    record = _record(directory, "eager_loop", 1)
    (book,) = record["memory_book"]["device"]
    lines = {(owner["role"], owner["line"]) for owner in book["at_peak"]}
    assert ("activations", line_of("eager_loop", "hidden =")) in lines
    assert ("gradients", line_of("eager_loop", "tape.gradient")) in lines
    assert ("weights", line_of("eager_loop", "first =")) in lines
    assert ("weights", line_of("eager_loop", "second =")) in lines
    assert ("input", line_of("eager_loop", "x = tf.constant")) in lines
    # On the console: one line, and the table that --memory asks for.
    said = " ".join(record["stderr"].split())
    assert "of 2.0 GiB at the peak of a step: gradients" in said
    assert f"train.py:{line_of('eager_loop', 'tape.gradient')}" in said
    assert any(excerpt["file"] == "train.py" for excerpt in record["sources"])


def test_on_the_cpu_the_book_is_said_to_be_absent(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import tensorflow as tf\nprint(float(tf.reduce_sum(tf.ones([4]))))\n")
    outcome = run_stoker(tmp_path, "--memory", "--experiments", "off", "train.py")
    assert (outcome.code, outcome.stdout) == (0, "4.0\n")
    assert outcome.record is not None
    assert "memory_book" not in outcome.record
    assert "No memory book. The program ran on the CPU." in " ".join(outcome.stderr.split())


@pytest.mark.slow
def test_when_memory_runs_out_the_owners_are_told_after_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((PROGRAMS / "too_large.py").read_text(encoding="utf-8"))
    outcome = run_stoker(tmp_path, "--device", "software-gpu", "--device-memory", "96MiB", "train.py")
    assert (outcome.code, outcome.stdout) == (1, "")
    assert outcome.record is not None
    trace, _, report = outcome.stderr.partition("\nstoker  ")
    assert "Traceback (most recent call last):" in trace
    assert "ResourceExhaustedError" in trace
    assert "stoker/" not in trace
    failed = outcome.record["memory_book"]["failed"]
    assert failed["device"] == "/GPU:0"
    assert failed["file"] == "train.py"
    assert failed["line"] in range(line_of("too_large", "Dense(1024"), line_of("too_large", "model.fit") + 1)
    assert failed["batch"] == 8192
    assert 0 < failed["largest_batch"] < 8192
    savings = [one["bytes"] for one in failed["savings"]]
    assert savings == sorted(savings, reverse=True)
    (book,) = outcome.record["memory_book"]["device"]
    assert sum(owner["bytes"] for owner in book["at_peak"]) == pytest.approx(book["peak_bytes"], rel=0.02)
    held = {(owner["role"], owner["line"]) for owner in book["at_peak"]}
    assert ("activations", line_of("too_large", "Dense(1024")) in held
    said = " ".join(report.split())
    assert f"Out of memory on /GPU:0: no 32.0 MiB for float32[8192,1024] at train.py:{failed['line']}" in said
    assert f"At most {failed['largest_batch']:,} fit" in said
    assert "accumulating gradients over 2 parts of the batch" in said


@pytest.mark.slow
@pytest.mark.skipif(not ALL, reason="`make memory-programs` runs it")
def test_fit_tells_the_owners_on_the_largest_batch_that_fits(tmp_path: Path) -> None:
    outcome = run_plain(tmp_path, str(PROGRAMS / "fit_too_large.py"))
    assert outcome.code == 1
    assert "BatchTooLargeError: batch_size=8192 does not fit into memory: 4096 does" in outcome.stderr
    (line,) = [one for one in outcome.stderr.splitlines() if one.startswith("stoker: ")]
    assert line.startswith("stoker: With batch_size=4096, memory: ")
    assert "of 96.0 MiB at the peak of a step: " in line
    assert "gradients" in line
    assert "activations" in line
