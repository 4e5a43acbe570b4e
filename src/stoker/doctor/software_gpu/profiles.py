"""What the modelled hardware can do: datasheet figures, and Stoker's assumptions.

Peak figures are the vendor's, for dense matrices, without sparsity. `float32` is what TensorFlow uses by default:
TensorFloat-32 on tensor cores if the hardware has it.

Latencies are not in datasheets. The defaults are the order of magnitude that published microbenchmarks of CUDA agree on
for PCIe cards on Linux: about 4 us of host time to launch a kernel, 2 us for the smallest kernel, 10 us for the
smallest copy and 10 us to return from a wait. Efficiencies are assumptions too: a well-fed library kernel reaches about
half of the arithmetic peak and four fifths of the memory bandwidth, and a copy from pageable memory (where NumPy arrays
live) about half of what the bus can do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from stoker.errors import UsageError

_TERA = 1e12
_GIGA = 1e9
_MIB = 1 << 20
# A process's CUDA context takes about this much of a device's memory. TensorFlow leaves a share of the rest free.
_CONTEXT_BYTES = 430 * _MIB
_LEFT_FREE = 0.05


@dataclass(frozen=True)
class Profile:
    """One kind of accelerator. Rates are per second, latencies in microseconds."""

    name: str
    float16_flops: float
    bfloat16_flops: float
    float32_flops: float
    float64_flops: float
    memory_bandwidth: float
    bus_bandwidth: float
    # In bytes, as the driver reports it; 0 if unknown.
    memory: float = 0.0
    launch_us: float = 4.0
    kernel_us: float = 2.0
    copy_us: float = 10.0
    sync_us: float = 10.0
    compute_efficiency: float = 0.5
    memory_efficiency: float = 0.8
    bus_efficiency: float = 0.5

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "name":
                continue
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
                raise UsageError(
                    f"device profile {self.name!r}: {field.name} must be a number, not {value!r}"
                )
            if value == 0 and not field.name.endswith("_us") and field.name != "memory":
                raise UsageError(f"device profile {self.name!r}: {field.name} must be more than 0")


# Tesla T4 datasheet, 2019: 8.1 TFLOP/s single, 65 TFLOP/s mixed precision, 300 GB/s, 32 GB/s over PCIe 3.0
# x16 for both directions together. Turing has no bfloat16 (computed as float32) and 1/32 of the single rate
# in double.
_T4 = Profile(
    name="t4",
    float16_flops=65 * _TERA,
    bfloat16_flops=8.1 * _TERA,
    float32_flops=8.1 * _TERA,
    float64_flops=8.1 / 32 * _TERA,
    memory_bandwidth=300 * _GIGA,
    bus_bandwidth=16 * _GIGA,
    memory=15095 * _MIB,
)

# V100 datasheet, 2020, PCIe model: 7 TFLOP/s double, 14 single, 112 tensor, 900 GB/s, 32 GB/s over PCIe 3.0
# for both directions together. Volta has no bfloat16.
_V100 = Profile(
    name="v100",
    float16_flops=112 * _TERA,
    bfloat16_flops=14 * _TERA,
    float32_flops=14 * _TERA,
    float64_flops=7 * _TERA,
    memory_bandwidth=900 * _GIGA,
    bus_bandwidth=16 * _GIGA,
    memory=16151 * _MIB,
)

# A100 datasheet, 2021, 80 GB PCIe model: 9.7 TFLOP/s double, 156 TF32, 312 bfloat16 and half, 1,935 GB/s, 64
# GB/s over PCIe 4.0 for both directions together.
_A100 = Profile(
    name="a100",
    float16_flops=312 * _TERA,
    bfloat16_flops=312 * _TERA,
    float32_flops=156 * _TERA,
    float64_flops=9.7 * _TERA,
    memory_bandwidth=1935 * _GIGA,
    bus_bandwidth=32 * _GIGA,
    memory=81051 * _MIB,
)

# H100 datasheet, 2023, SXM model: 34 TFLOP/s double; 989 TF32, 1,979 bfloat16 and half, all three with
# sparsity, so half of that dense; 3.35 TB/s; 128 GB/s over PCIe 5.0 for both directions together.
_H100 = Profile(
    name="h100",
    float16_flops=1979 / 2 * _TERA,
    bfloat16_flops=1979 / 2 * _TERA,
    float32_flops=989 / 2 * _TERA,
    float64_flops=34 * _TERA,
    memory_bandwidth=3350 * _GIGA,
    bus_bandwidth=64 * _GIGA,
    memory=81000 * _MIB,
)

# A name of `PROFILES`, a profile, or a mapping with its fields.
ProfileLike: TypeAlias = str | Profile | Mapping[str, Any]
PROFILES: dict[str, Profile] = {profile.name: profile for profile in (_T4, _V100, _A100, _H100)}


def usable_memory(profile: Profile) -> int:
    """Return about how many bytes of such a device TensorFlow's allocator gets; 0 if the profile has no memory size."""
    return max(0, int((profile.memory - _CONTEXT_BYTES) * (1 - _LEFT_FREE)))


def device_name(profile: str) -> str:
    """Return the name of a device of this profile in a record; `of_device` reads the name back."""
    return f"software GPU, {profile} profile"


def of_device(name: str) -> Profile | None:
    """Return the profile of a device of this name; None for a real device, or for one of the user's own profiles."""
    return next((profile for profile in PROFILES.values() if name == device_name(profile.name)), None)


def resolve(profile: ProfileLike, own: Mapping[str, Mapping[str, object]] | None = None) -> Profile:
    """Return the profile of that name, or one made from a mapping with its fields.

    A mapping may name a profile to start from: `{"name": "slow-bus", "base": "a100", "bus_bandwidth": 4e9}`. `own`
    holds the user's profiles by name (`[tool.stoker.device-profiles]`); they take precedence over Stoker's profiles of
    the same name.

    Raises:
        UsageError: the profile or a field is unknown, or a value is not a number.
    """
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str) and own and profile in own:
        profile = {"name": profile, **own[profile]}
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise UsageError(f"no device profile {profile!r}: choose one of {', '.join(sorted(PROFILES))}")
        return PROFILES[profile]
    values = dict(profile)
    base = values.pop("base", None)
    known = {field.name for field in dataclasses.fields(Profile)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise UsageError(
            f"device profile: no such field {unknown[0]!r}; the fields are {', '.join(sorted(known))}"
        )
    values.setdefault("name", "custom")
    if base is not None:
        return dataclasses.replace(resolve(str(base)), **values)
    required = {f.name for f in dataclasses.fields(Profile) if f.default is dataclasses.MISSING}
    missing = sorted(required - set(values))
    if missing:
        raise UsageError(
            f"device profile {values['name']!r} lacks {', '.join(missing)} (or a `base` to take them from)"
        )
    return Profile(**values)
