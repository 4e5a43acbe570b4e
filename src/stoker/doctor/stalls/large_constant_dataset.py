"""A large array is embedded in the dataset as a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Array, Seq, Value
from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

# Below this size, the copies cost little compared with the training itself.
_LARGE = 512 * 1024 * 1024
_ON_DEVICE = "Make the dataset under `with tf.device('CPU:0')`: tf.data never reads the copy on the device."


class LargeConstantDataset(Rule):
    """`from_tensor_slices` of an array that is known to be large."""

    slug = "large-constant-dataset"
    code = "STK307"
    account = "input"
    title = "A large array is embedded in the dataset as a constant"
    remedy = "Read it from files (TFRecord, np.memmap through a reader) or feed it by index."
    severity = "warning"
    what = (
        "Reports `from_tensor_slices` or `from_tensors` of an array that the code shows to be larger than 512 MiB: "
        "by a literal shape, by a well-known data set converted to floats, or because it is a memory map."
    )
    why = (
        "The array is copied into a tensor and kept as a constant of the dataset's graph: memory is taken two or "
        "three times, startup is slow, and graphs over 2 GB fail. A memory map is read whole into memory."
    )
    known_problems = (
        "The size of an array that comes from a file is not known without running, so most large ones "
        "are not seen here. `stoker run` sees those that a GPU holds."
    )

    holds_memory = True

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report datasets made from arrays of a known, large size."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or not fact.name.endswith(("from_tensor_slices", "from_tensors")):
                continue
            for array in _arrays(fact.argument(0, "tensors")):
                if array.size == -1:
                    yield self.problem(fact.at, "a memory-mapped array is read whole and kept as a constant")
                    break
                if array.size > _LARGE:
                    size = f"{array.size / 2**30:.1f} GiB"
                    yield self.problem(fact.at, f"an array of {size} is copied and kept as a constant")
                    break

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report datasets whose array is in the memory of a device."""
        for one in m[HeldPart].on_device:
            detail = {"device": one.device}
            yield Draft(one.site, 0, None, None, saved_bytes=one.bytes, remedy=_ON_DEVICE, detail=detail)


def _arrays(value: Value | None) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, Seq):
        for item in value.items or ():
            yield from _arrays(item)


STALL = LargeConstantDataset()
