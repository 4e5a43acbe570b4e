"""The same array is in memory more than once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements


class ArrayHeldTwice(Stall):
    """A NumPy array and a tensor made from it, or several tensors of one array, all alive while the program steps."""

    slug = "array-held-twice"
    code = "STK702"
    account = "transfer"
    title = "The same array is in memory more than once"
    remedy = (
        "Make one tensor or dataset of it, use that everywhere, and `del` the array; or feed it from a file or a "
        "memory map."
    )
    why = (
        "`tf.constant`, `from_tensor_slices` and `fit` copy a NumPy array. The array stays as long as the program has "
        "a name for it, and each further copy takes as much memory again."
    )
    holds_memory = True

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report arrays that were in one memory several times for many steps."""
        for one in m[HeldPart].repeated:
            yield Draft(
                one.site,
                one.copies,
                None,
                None,
                bytes=one.bytes,
                saved_bytes=one.bytes * (one.copies - 1),
                detail={"copies": one.copies, "device": one.device},
            )


STALL = ArrayHeldTwice()
