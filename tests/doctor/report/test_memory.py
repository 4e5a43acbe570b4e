"""The memory book on the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from stoker.doctor.report import console
from stoker.doctor.report.memory import failure_lines, memory_lines, render_memory
from stoker.records import Device, FailedAllocation, MemoryBook, Record, Saving
from tests.samples import sample_memory_book, sample_record


def drawn(record: Record, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(render_memory(record, width))
    return stream.getvalue()


def test_one_line_says_how_much_and_by_whom() -> None:
    (line,) = memory_lines(sample_record(memory_book=sample_memory_book()))
    assert line == (
        "memory: 11.2 GiB of 15.0 GiB at the peak of a step: activations 7.1 GiB (train.py:48 conv_stack 5.0 GiB), "
        "optimizer 1.6 GiB (train.py:60), weights 1.5 GiB (train.py:48 conv_stack), other 1.0 GiB"
    )


def test_two_devices_have_a_line_each_and_a_higher_peak_is_mentioned() -> None:
    (book,) = sample_memory_book().device
    second = replace(book, device="/GPU:1", run_peak_bytes=2 * book.peak_bytes)
    first, other = memory_lines(sample_record(memory_book=MemoryBook([book, second])))
    assert first.startswith("memory on /GPU:0: 11.2 GiB")
    assert other.startswith("memory on /GPU:1: 11.2 GiB")
    assert other.endswith("The run's highest peak, 22.4 GiB, was outside the recorded steps")


def test_the_table_keeps_lines_whole_on_a_narrow_terminal() -> None:
    text = drawn(sample_record(memory_book=sample_memory_book()))
    first = next(line for line in text.splitlines() if "44.6%" in line).split()
    assert first[:6] == ["5.0", "GiB", "44.6%", "activations", "train.py:48", "model/conv_stack"]
    assert first[6].startswith("float32[256,1")
    assert "25% of the free memory outside" in " ".join(text.split())
    assert all(len(line) <= 80 for line in text.splitlines())


def test_when_memory_ran_out_the_report_begins_with_the_allocation() -> None:
    book = sample_memory_book()
    failed = FailedAllocation(
        "/GPU:0",
        "[256,112,112,64]",
        "float32",
        822_083_584,
        "model/conv_stack/Conv2D",
        "train.py",
        48,
        "build",
        "model/conv_stack",
        batch=256,
        largest_batch=190,
        savings=[Saving("mixed precision (activations in 16 bits)", 3 << 30)],
    )
    record = sample_record(memory_book=replace(book, failed=failed))
    assert failure_lines(record) == [
        "Out of memory on /GPU:0: no 784.0 MiB for float32[256,112,112,64] at train.py:48 (layer model/conv_stack).",
        "The batch has 256 rows. At most 190 fit, judging by what the step had allocated until then.",
        "Roughly what each change would save: mixed precision (activations in 16 bits): 3.0 GiB.",
    ]
    assert failure_lines(sample_record(memory_book=book)) == []
    stream = io.StringIO()
    Console(file=stream, width=100).print(console.render(record, Path("x.json"), 100))
    # The owners are told without being asked for.
    assert "44.6%" in stream.getvalue()
    assert Record.from_json(record.to_json()) == record


def test_a_run_without_a_book_says_why() -> None:
    assert "The program ran on the CPU" in " ".join(drawn(sample_record()).split())
    on_device = sample_record(device=Device("A GPU", "GPU", 1))
    assert "program ended before it had made a few steps" in " ".join(drawn(on_device).split())
    assert memory_lines(on_device) == []
