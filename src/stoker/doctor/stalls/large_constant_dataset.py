"""STK307: a large array is embedded in the dataset as a constant."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.values import Array, Seq, Value

# Below this the copies cost little beside the training itself.
_LARGE = 512 * 1024 * 1024


class LargeConstantDataset(Rule):
    """`from_tensor_slices` of an array that is known to be large."""

    kind = "large-constant-dataset"
    severity = "warning"
    page = Page(
        what="Reports `from_tensor_slices` or `from_tensors` of an array that the code shows to be larger than 512 MiB: "
        "by a literal shape, by a well-known data set converted to floats, or because it is a memory map.",
        why="The array is copied into a tensor and kept as a constant of the dataset's graph: memory is taken two or "
        "three times, starting up takes long, and graphs over 2 GB fail. A memory map loses its point.",
        known_problems="The size of an array that comes from a file is not known without running, so most large ones "
        "are not seen here; `stoker run` sees them.",
    )
    bad = (
        bad(
            """
            import numpy as np
            import tensorflow as tf

            images = np.zeros((50000, 224, 224, 3), dtype=np.float32)
            dataset = tf.data.Dataset.from_tensor_slices(images).batch(32)  #!
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            rows = np.memmap("rows.bin", dtype="float32", mode="r")
            dataset = tf.data.Dataset.from_tensor_slices(rows)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            (x, y), _ = tf.keras.datasets.cifar10.load_data()
            x = x / 255.0
            train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000)  #!
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            tokens = np.load("tokens.npy", mmap_mode="r")
            labels = np.load("labels.npy")
            dataset = tf.data.Dataset.from_tensor_slices((tokens, labels))  #!
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            files = tf.io.gfile.glob("images-*.tfrecord")
            dataset = tf.data.TFRecordDataset(files, num_parallel_reads=8).batch(32)
            """
        ),
        good(
            """
            import tensorflow as tf

            (x, y), _ = tf.keras.datasets.mnist.load_data()
            train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000)
            """
        ),
        good(
            """
            import tensorflow as tf

            _, (x_test, y_test) = tf.keras.datasets.cifar10.load_data()
            x_test = x_test / 255.0
            test = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(256)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            x = np.random.rand(1000, 32).astype("float32")
            train = tf.data.Dataset.from_tensor_slices(x).batch(32)
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            rows = np.memmap("rows.bin", dtype="float32", mode="r", shape=(10**8, 8))
            order = tf.data.Dataset.range(10**8).shuffle(10**6).batch(256)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Sources made of arrays of a known, large size."""
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


def _arrays(value: Value | None) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, Seq):
        for item in value.items or ():
            yield from _arrays(item)


RULE = LargeConstantDataset()
