"""A new iterator every time round: deleting the old one holds the program up."""

from __future__ import annotations

from stoker.doctor.stall import Stall


class IteratorTeardown(Stall):
    """A new iterator for every epoch, each taken down again."""

    slug = "iterator-teardown"
    code = "STK309"
    account = "teardown"
    title = "A new iterator every time round: deleting the old one holds the program up"
    remedy = (
        "Iterate once over dataset.repeat(epochs), or switch tf.data's autotuner off for this pipeline "
        "(options.autotune.enabled = False): deleting an iterator waits for it."
    )
    why = (
        "Each `for` over a dataset makes an iterator, and deleting it waits until tf.data's autotuner has "
        "stopped."
    )


STALL = IteratorTeardown()
