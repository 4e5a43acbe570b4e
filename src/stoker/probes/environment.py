"""What a run depends on beside its code: the machine, the build of TensorFlow, and the variables that steer them."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

# Variables that change what TensorFlow, XLA, CUDA, the allocator or the thread pools do.
_PREFIXES = (
    "TF_",
    "XLA_",
    "CUDA_",
    "NVIDIA_",
    "KERAS_",
    "OMP_",
    "KMP_",
    "MKL_",
    "ONEDNN_",
    "MALLOC_",
    "NCCL_",
)
_NAMES = ("LD_PRELOAD", "PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONDEVMODE", "STOKER_PROFILE")
# May hold addresses of other machines and be as long as a cluster; belong to Terraform.
_LEFT_OUT = ("TF_CONFIG", "TF_CLI_", "TF_VAR_", "TF_TOKEN_")
_MAX_VALUE = 200


def environment() -> dict[str, str | int | float]:
    """The machine and the variables. Of TensorFlow only what is there once it is imported."""
    facts: dict[str, str | int | float] = {
        "platform": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cores": os.cpu_count() or 0,
    }
    if sys.platform == "linux":
        facts["cores usable"] = len(os.sched_getaffinity(0))
    memory = _memory()
    if memory:
        facts["memory"] = memory
    facts |= _tensorflow_build()
    for name in sorted(os.environ):
        if (name.startswith(_PREFIXES) or name in _NAMES) and not name.startswith(_LEFT_OUT):
            facts[name] = os.environ[name][:_MAX_VALUE]
    return facts


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _tensorflow_build() -> dict[str, str | int | float]:
    """Of a TensorFlow that is imported already: asking must not import it, nor start its devices."""
    module: Any = sys.modules.get("tensorflow.python.platform.build_info")
    if module is None:
        return {}
    info = module.build_info
    if info.get("is_rocm_build"):
        return {"TensorFlow build": "ROCm"}
    if info.get("is_cuda_build"):
        return {"TensorFlow build": f"CUDA {info.get('cuda_version')}, cuDNN {info.get('cudnn_version')}"}
    return {"TensorFlow build": "CPU only"}
