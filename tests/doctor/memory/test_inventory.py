"""What the inventory finds, and that it leaves the program's other threads alone."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import keras
import pytest
import tensorflow as tf

from stoker.doctor.memory.births import Births
from stoker.doctor.memory.inventory import Holding, Inventory, refresh_names, take_inventory

pytestmark = pytest.mark.tensorflow
_LOOKS = 20


def test_a_layer_is_known_by_its_name() -> None:
    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(3, name="known_by_name")])
    inventory = take_inventory(Births(), has_keras=True)
    assert inventory.named["known_by_name"]() is model.layers[0]
    # It was off for the moment of the look.
    assert gc.isenabled()


def test_a_tensor_counts_if_it_lived_to_the_end_of_the_window() -> None:
    """The window is read while the program goes on; a short one has dropped its list of tensors by then."""
    kept, dropped = tf.ones([256]), tf.ones([256])
    held = Holding("/GPU:0", "other", 1024, "[256]", "float32", "kept")
    gone = Holding("/GPU:0", "other", 1024, "[256]", "float32", "dropped")
    inventory = Inventory(tensors=[(weakref.ref(kept), held), (weakref.ref(dropped), gone)])
    del dropped
    inventory.end_window()
    del kept
    assert inventory.holdings("/GPU:0") == [held]


def test_what_another_thread_is_just_making_is_left_for_the_next_time() -> None:
    done = tf.Variable(1.0), keras.layers.Dense(3, name="done"), keras.optimizers.SGD(), keras.metrics.Mean()
    kinds: list[Any] = [type(one) for one in done[1:]]
    begun = [*(kind.__new__(kind) for kind in kinds), object.__new__(type(done[0]))]
    inventory = take_inventory(Births(), has_keras=True)
    assert inventory.named["done"]() is done[1]
    del begun


@pytest.mark.slow
def test_a_tuple_that_another_thread_is_making_can_be_finished() -> None:
    """Python refuses to finish a tuple that somebody else holds, with a SystemError in the middle of the program."""
    looked = threading.Event()

    def look() -> None:
        try:
            for _ in range(_LOOKS):
                refresh_names(Inventory(), has_keras=True)
        finally:
            looked.set()

    def numbers() -> Iterator[int]:
        # A loop, since Python changes threads only where lines of its own repeat.
        for number in range(37):  # noqa: UP028
            yield number

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        while not looked.is_set():
            assert len(tuple(numbers())) == 37
    finally:
        thread.join()
        sys.setswitchinterval(interval)
