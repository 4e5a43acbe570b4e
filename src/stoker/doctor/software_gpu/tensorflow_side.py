"""The part that touches TensorFlow itself. Importing this module imports TensorFlow."""

from __future__ import annotations

import copy
import ctypes
from pathlib import Path

import tensorflow as tf

from stoker.errors import UsageError
from stoker.tf_internals import devices, distribution, eager, iterators
from stoker.tf_internals.types import CollectiveOptions, DatasetIterator
from stoker.units import quantity


def has_started() -> bool:
    """Return whether TensorFlow's runtime has started. After that, no device can be added."""
    return eager.has_started()


def gpus() -> list[str]:
    """Return the names of the physical GPUs that TensorFlow sees."""
    return [device.name for device in tf.config.list_physical_devices("GPU")]


def load_plugin(path: Path, count: int) -> None:
    """Make TensorFlow load the plug-in and see its devices.

    Raises:
        UsageError: TensorFlow refused the plug-in.
    """
    try:
        devices.load_plugin(str(path))
    except (RuntimeError, tf.errors.OpError) as error:
        raise UsageError(f"TensorFlow {tf.__version__} did not load the software GPU: {error}") from error
    if len(gpus()) != count:
        raise UsageError(
            f"TensorFlow {tf.__version__} sees {quantity(len(gpus()), 'GPU')} instead of {count}"
        )


def adapt(library: ctypes.PyDLL, deterministic: bool) -> None:
    """Make TensorFlow and Keras behave as with a GPU, and keep the clock undisturbed."""
    # Keras orders a GRU's gates for cuDNN only in a CUDA build. Without this the results would be silently wrong.
    tf.sysconfig.get_build_info()["is_cuda_build"] = True
    if deterministic:
        # One op after another, so that ops reach the device in the order of the graph.
        tf.config.threading.set_inter_op_parallelism_threads(1)
    _leave_iterator_teardown_out(library)
    _reduce_without_nccl()


def memory_of(ordinal: int) -> tuple[int, int]:
    """Return the bytes of tensors on the device with this number: now, and at the peak."""
    visible = [device.name for device in tf.config.get_visible_devices("GPU")]
    name = f"/physical_device:GPU:{ordinal}"
    if name not in visible:
        return 0, 0
    info = tf.config.experimental.get_memory_info(f"GPU:{visible.index(name)}")
    return int(info["current"]), int(info["peak"])


def reset_memory_peaks() -> None:
    """Restart the peaks from the memory in use now."""
    for index, _ in enumerate(tf.config.get_visible_devices("GPU")):
        tf.config.experimental.reset_memory_stats(f"GPU:{index}")


def _leave_iterator_teardown_out(library: ctypes.PyDLL) -> None:
    """Stop the clock while a tf.data iterator is destroyed.

    With autotuning, that can block for up to a second, once per iterator and on any device. The time is neither the
    program's work nor the accelerator's, and would drown out a short measurement.
    """

    def release(iterator: DatasetIterator) -> None:
        library.stoker_gpu_stop_clock()
        try:
            iterator.__dict__.clear()
        finally:
            library.stoker_gpu_start_clock()

    iterators.iterator_type().__del__ = release


def _reduce_without_nccl() -> None:
    """Make strategies reduce across devices with TensorFlow's own ring.

    Strategies ask for NCCL when they see GPUs. A CUDA build has NCCL, but NCCL needs CUDA; other builds use the ring
    anyway.
    """
    options_type = distribution.collective_options()
    original = options_type.merge
    implementations = tf.distribute.experimental.CommunicationImplementation

    def merge(self: CollectiveOptions, options: CollectiveOptions) -> CollectiveOptions:
        merged = copy.copy(original(self, options))
        if merged.implementation == implementations.NCCL:
            merged.implementation = implementations.RING
        return merged

    options_type.merge = merge
