"""A coarse model of the same program elsewhere: on another device, with a larger batch, on several replicas.

It scales a program as it would be replayed, after the repairs that were asked for. Compare examples a second: a larger
batch makes fewer, longer steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.program import Program
from stoker.doctor.replay.simulation import Draw
from stoker.doctor.software_gpu.profiles import Profile

# Operations a second of one core in float32, from an old laptop's to a new server's. Only for runs on a CPU.
_CORE_FLOPS = (20e9, 120e9)
# Bytes a second that a core gets from memory.
_CORE_BYTES = (4e9, 12e9)
# The latency of a message between two replicas on a fast network. Between processes on CPUs it is ten times as long.
LATENCY_S = 50e-6


@dataclass(frozen=True)
class Scale:
    """The differences between the measured and the scaled program."""

    device: Profile | None = None
    # The device that the run was measured on, if it was a modelled one.
    measured_on: Profile | None = None
    batch: float = 1.0
    workers: int = 1
    # Bytes of the trained weights, which replicas exchange at every step.
    gradient_bytes: int = 0
    # Bytes a second between replicas, and seconds a message.
    bandwidth: float = 16e9
    latency_s: float = LATENCY_S

    @property
    def uncertain(self) -> list[str]:
        """The names, for `Draw.between`, of what is uncertain."""
        return [
            *(["speed of the processor"] if self.device and self.measured_on is None else []),
            *(["bound by arithmetic or memory"] if self.device else []),
            *(["kernels of a larger batch"] if self.batch != 1 else []),
        ]

    def assumptions(self) -> list[str]:
        """Return the assumptions in words."""
        said = []
        if self.device:
            core = "a processor core (20 to 120 GFLOP/s)"
            said.append(
                f"on {self.device.name} kernels are quicker by as much as its arithmetic, or its memory bandwidth, "
                f"exceeds that of {self.measured_on.name if self.measured_on else core}"
            )
            said.append("the host stays as it is, and hands work over without waiting for it; reads wait")
        if self.batch != 1:
            said.append(
                f"a batch {self.batch:g} times as large needs that many times the input and the copies, "
                "and up to that many times the kernels"
            )
        if self.workers > 1:
            said.append(
                f"{self.workers} replicas, each with a host and an input of its own; per step a ring exchanges "
                f"{self.gradient_bytes / 1e6:.1f} MB of gradients at {self.bandwidth / 1e9:g} GB/s and "
                f"{self.latency_s * 1e6:.4g} us a message, without overlapping any kernel"
            )
        return said


def scale_program(program: Program, scale: Scale, draw: Draw) -> Program:
    """Return the program as it would be with these differences."""
    if scale.device is not None:
        program = _on_device(program, scale, draw)
    if scale.batch != 1:
        program = _with_batch(program, scale.batch, draw)
    if scale.workers > 1:
        program = _replicate(program, exchange_seconds(scale))
    return program


def examples_factor(scale: Scale) -> float:
    """Return the factor by which a step has more examples, over all replicas."""
    return scale.batch * scale.workers


def exchange_seconds(scale: Scale) -> float:
    """Return the seconds of a ring all-reduce, in which every byte travels nearly twice."""
    bytes_moved = 2 * (scale.workers - 1) / scale.workers * scale.gradient_bytes
    return bytes_moved / scale.bandwidth + 2 * (scale.workers - 1) * scale.latency_s


def _device_factor(program: Program, scale: Scale, draw: Draw) -> float:
    """Return how many seconds a second of kernels takes on the other device."""
    device, before = scale.device, scale.measured_on
    assert device is not None
    if before is not None:
        arithmetic = before.float32_flops * before.compute_efficiency
        memory = before.memory_bandwidth * before.memory_efficiency
    else:
        arithmetic = draw.between(*_CORE_FLOPS, "speed of the processor") * program.kernel_threads
        memory = draw.between(*_CORE_BYTES, "speed of the processor") * program.kernel_threads
    faster = device.float32_flops * device.compute_efficiency / arithmetic
    wider = device.memory_bandwidth * device.memory_efficiency / memory
    return 1 / draw.between(min(faster, wider), max(faster, wider), "bound by arithmetic or memory")


def _on_device(program: Program, scale: Scale, draw: Draw) -> Program:
    device = scale.device
    assert device is not None
    factor, least = _device_factor(program, scale, draw), device.kernel_us * 1e-6

    def change(piece: Piece) -> Piece:
        if piece.device:
            return replace(piece, device=max(piece.device * factor, least))
        if piece.account == "compute":
            # The work is queued on the device, and the host is free while it runs.
            return replace(
                piece,
                account="launch",
                seconds=device.launch_us * 1e-6,
                device=max(piece.seconds * factor, least),
            )
        if piece.account == "eager" and not program.asynchronous:
            kernels = piece.seconds * program.eager_kernels
            return replace(piece, seconds=piece.seconds - kernels, device=max(kernels * factor, least))
        if piece.account == "sync":
            return replace(piece, seconds=max(piece.seconds - piece.wait, device.sync_us * 1e-6), wait=0.0)
        return piece

    steps = [[change(piece) for piece in step] for step in program.steps]
    return replace(program, steps=steps, asynchronous=True)


def _with_batch(program: Program, batch: float, draw: Draw) -> Program:
    """Scale the batch: linearly on a processor. On an accelerator, kernels may have room for more rows."""
    kernels = (
        draw.between(min(1.0, batch), max(1.0, batch), "kernels of a larger batch")
        if program.asynchronous
        else batch
    )
    factors = {"compute": batch, "input": batch, "transfer": batch}

    def change(piece: Piece) -> Piece:
        eager = (
            program.eager_kernels * (batch - 1)
            if piece.account == "eager" and not program.asynchronous
            else 0.0
        )
        factor = factors.get(piece.account, 1.0) + eager
        return replace(piece, seconds=piece.seconds * factor, device=piece.device * kernels)

    source = program.source
    return replace(
        program,
        steps=[[change(piece) for piece in step] for step in program.steps],
        source=None if source is None else replace(source, seconds=source.seconds * batch),
    )


def _replicate(program: Program, exchange: float) -> Program:
    """Add an exchange of gradients between the replicas after each step."""

    def extend(step: list[Piece]) -> list[Piece]:
        if not program.asynchronous:
            return [*step, Piece("exchange", exchange)]
        return [*step, Piece("exchange", 0.0, device=exchange)]

    return replace(program, steps=[extend(step) for step in program.steps])
