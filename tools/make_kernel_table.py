"""Write the table of GPU kernels that the software GPU offers, from two TensorFlow installations.

    python tools/make_kernel_table.py FULL_PYTHON CPU_PYTHON > src/stoker/doctor/software_gpu/plugin/kernel_table.txt

FULL_PYTHON has the wheel built with CUDA (no GPU is needed), CPU_PYTHON the one without. The table is what
the first registers for the device type GPU and the second does not: which ops a real GPU runs, for which
types, and which of their arguments stay in host memory. So programs are placed as they would be on a real
GPU.

One line is one or more registrations: op, label, priority, host arguments, type constraints. Registrations
that differ in one constraint alone are merged; `T=DT_FLOAT|DT_HALF` stands for two.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, replace

_DUMP = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels
print("@version", tf.__version__)
for k in kernels.get_all_registered_kernels().kernel:
    if k.device_type != "GPU":
        continue
    constraints = []
    for c in k.constraint:
        values = c.allowed_values.list
        names = [types_pb2.DataType.Name(t) for t in values.type] + ["i:%d" % i for i in values.i]
        names += ["s:" + s.decode() for s in values.s] + ["b:%d" % b for b in values.b]
        assert names, str(k)
        constraints.append(c.name + "=" + "|".join(names))
    host = ",".join(k.host_memory_arg) or "-"
    print("@kernel", k.op, k.label or "-", k.priority, host, *sorted(constraints))
"""


@dataclass(frozen=True)
class Kernel:
    """One registration, or several that differ in the values one constraint allows."""

    op: str
    label: str
    priority: int
    host: str
    constraints: tuple[tuple[str, tuple[str, ...]], ...]

    def line(self) -> str:
        parts = [self.op, self.label, str(self.priority), self.host]
        return " ".join(parts + [f"{name}={'|'.join(values)}" for name, values in self.constraints])


def dump(python: str) -> tuple[str, set[Kernel]]:
    """The version of that TensorFlow and its GPU kernels."""
    command = [python, "-c", _DUMP]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    version = next(line.split()[1] for line in lines if line.startswith("@version"))
    return version, {parse(line.split()[1:]) for line in lines if line.startswith("@kernel")}


def parse(fields: list[str]) -> Kernel:
    op, label, priority, host, *rest = fields
    constraints = []
    for item in rest:
        name, values = item.split("=", 1)
        constraints.append((name, tuple(values.split("|"))))
    return Kernel(op, label, int(priority), host, tuple(sorted(constraints)))


def merged(kernels: set[Kernel]) -> set[Kernel]:
    """Join kernels that differ in one constraint alone, constraint by constraint."""
    width = max(len(k.constraints) for k in kernels)
    for position in range(width):
        groups: dict[Kernel, set[str]] = defaultdict(set)
        for kernel in kernels:
            if position >= len(kernel.constraints):
                groups[kernel] |= set()
                continue
            name, values = kernel.constraints[position]
            others = kernel.constraints[:position] + ((name, ()),) + kernel.constraints[position + 1 :]
            groups[replace(kernel, constraints=others)] |= set(values)
        kernels = {with_values(kernel, position, values) for kernel, values in groups.items()}
    return kernels


def with_values(kernel: Kernel, position: int, values: set[str]) -> Kernel:
    if position >= len(kernel.constraints):
        return kernel
    filled = (kernel.constraints[position][0], tuple(sorted(values)))
    constraints = kernel.constraints[:position] + (filled,) + kernel.constraints[position + 1 :]
    return replace(kernel, constraints=constraints)


def main() -> None:
    version, full = dump(sys.argv[1])
    _, cpu = dump(sys.argv[2])
    own = {(k.op, k.label, k.constraints) for k in cpu}
    table = {k for k in full if (k.op, k.label, k.constraints) not in own}
    rows = sorted(k.line() for k in merged(table))
    print(f"# GPU kernels of TensorFlow {version} built with CUDA that the build without it lacks.")
    print(f"# Written by tools/make_kernel_table.py: {len(table)} registrations in {len(rows)} lines.")
    print("# op label priority host-arguments constraints...")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
