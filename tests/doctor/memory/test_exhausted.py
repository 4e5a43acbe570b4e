"""What is said when memory runs out."""

from __future__ import annotations

import pytest

from stoker.doctor.memory.exhausted import Refusal, describe_failure, error_texts, read_refusal
from stoker.doctor.memory.owners import Owner
from stoker.records import DeviceMemory, LargestTensor, MemoryOwner

IN_GRAPH = """Graph execution error:

Detected at node gradient_tape/sequential_1/dense_3_1/MatMul/MatMul defined at (most recent call last):
<stack traces unavailable>
OOM when allocating tensor with shape[8192,4096] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by \
allocator GPU_0_bfc
\t [[{{node gradient_tape/sequential_1/dense_3_1/MatMul/MatMul}}]]
 [Op:__inference_multi_step_on_iterator_1691]"""
EAGER = (
    "{{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}} OOM when allocating tensor "
    "with shape[1024,1024] and type half on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc "
    "[Op:Mul] name: "
)
MIB = 1 << 20


def owner(role: str, size: int, dtype: str = "float32") -> MemoryOwner:
    return MemoryOwner(
        "train.py", 7, "step", "dense", role, size, 1, LargestTensor("[64,8]", dtype, "MatMul")
    )


def book(batch: int | None = 64, batch_bytes: int = 400 * MIB) -> DeviceMemory:
    owners = [owner("activations", 400 * MIB), owner("optimizer", 100 * MIB), owner("weights", 50 * MIB)]
    return DeviceMemory("/GPU:0", 550 * MIB, 600 * MIB, 0.0, owners, batch=batch, batch_bytes=batch_bytes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            IN_GRAPH,
            Refusal(
                "/GPU:0",
                "[8192,4096]",
                "float32",
                128 * MIB,
                "gradient_tape/sequential_1/dense_3_1/MatMul/MatMul",
            ),
        ),
        (EAGER, Refusal("/GPU:1", "[1024,1024]", "float16", 2 * MIB, "Mul")),
        ("OOM when allocating tensor with shape[3] and type float on /device:CPU:0 by allocator cpu", None),
        ("something else", None),
    ],
)
def test_the_error_says_what_was_asked_for(text: str, expected: Refusal | None) -> None:
    assert read_refusal(text) == expected


def test_the_error_behind_an_error_is_read_too() -> None:
    error = ValueError("batch_size=64 does not fit")
    error.__cause__ = MemoryError(EAGER)
    error.__cause__.__context__ = error
    assert list(error_texts(error)) == ["batch_size=64 does not fit", EAGER]


def test_the_largest_batch_leaves_room_for_what_does_not_grow() -> None:
    refusal = Refusal("/GPU:0", "[64,1024]", "float32", 100 * MIB, "MatMul")
    failed = describe_failure(refusal, Owner("gradients", "dense", ("train.py", 9, "step")), None, book())
    assert (failed.file, failed.line, failed.layer) == ("train.py", 9, "dense")
    # 150 MiB stay, 450 are left for what took 400 and wanted 100 more with 64 rows.
    assert (failed.batch, failed.largest_batch) == (64, 57)
    assert [(one.change.split(" (")[0], one.bytes // MIB) for one in failed.savings] == [
        ("accumulating gradients over 4 parts of the batch", 375),
        ("accumulating gradients over 2 parts of the batch", 250),
        ("mixed precision", 200),
        ("an optimizer without slots, such as SGD", 100),
    ]


def test_without_a_batch_nothing_is_said_of_one() -> None:
    refusal = Refusal("/GPU:0", "[64,1024]", "float32", 100 * MIB, "Mul")
    made = describe_failure(
        refusal, Owner("other"), ("train.py", 5, "<module>"), book(batch=None, batch_bytes=0)
    )
    assert (made.line, made.batch, made.largest_batch) == (5, None, None)
    assert not any("parts" in one.change for one in made.savings)
