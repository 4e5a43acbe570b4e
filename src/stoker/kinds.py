"""The vocabulary of stalls: static rules, run-time probes, reports and docs all use these names.

A kind is named after the bad pattern. Codes are stable, by family: STK1xx syncs and copies, STK2xx graphs,
STK3xx input, STK4xx precision and devices, STK5xx training and inference practice, STK6xx jobs of many workers.

The words of a remedy are here, a sentence for each kind; a detector may say it more exactly for a run (`Draft.remedy`),
and a guard adds how to allow it. What goes by other names: a *fix* edits the source (`check`, `fix`), a *repair* is
what the replay takes away (`replay.repairs`), an *example* shows a stall before and after (the rules' cases, and
`report.page.before_after`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A named stall pattern."""

    slug: str
    code: str
    # The account its cost usually shows up on.
    account: str
    title: str
    # One sentence that says what to do.
    remedy: str


_KINDS = (
    Kind(
        "sync-in-loop",
        "STK101",
        "sync",
        "A tensor is read back to the host in the loop",
        "Keep values on the device and read them every N steps, or once after the loop.",
    ),
    Kind(
        "numpy-feed-in-loop",
        "STK102",
        "transfer",
        "NumPy data is converted and copied at every step",
        "Convert once before the loop, or feed the step from a tf.data pipeline.",
    ),
    Kind(
        "host-callback-per-batch",
        "STK103",
        "python",
        "A callback runs Python on the host after every batch",
        "Do the work every N batches or in on_epoch_end.",
    ),
    Kind(
        "session-feed-dict",
        "STK104",
        "transfer",
        "Session.run is fed through feed_dict",
        "Feed from a tf.data pipeline, or move to tf.function.",
    ),
    Kind(
        "eager-train-step",
        "STK201",
        "dispatch",
        "The step runs op by op instead of as a graph",
        "Decorate the step with @tf.function (or drop run_eagerly=True).",
    ),
    Kind(
        "tf-function-in-loop",
        "STK202",
        "trace",
        "A tf.function is created inside the loop and traced every time",
        "Create the tf.function once, outside the loop.",
    ),
    Kind(
        "retrace-python-arg",
        "STK203",
        "trace",
        "A changing Python argument retraces the function",
        "Pass it as a tensor (tf.constant), or give the function an input_signature.",
    ),
    Kind(
        "retrace-shape",
        "STK204",
        "trace",
        "A changing tensor shape or dtype retraces the function",
        "Pad or drop the odd batch, or give the dimension as None in an input_signature.",
    ),
    Kind(
        "side-effect-in-tf-function",
        "STK205",
        "trace",
        "Python side effects in a tf.function happen only while it is traced",
        "Use tf.print, tf.Variable or TensorArray, or move the effect out of the function.",
    ),
    Kind(
        "no-input-signature",
        "STK206",
        "trace",
        "A tf.function with varying inputs has no input_signature",
        "Give it an input_signature, with None for the dimensions that vary.",
    ),
    Kind(
        "launch-bound",
        "STK207",
        "dispatch",
        "Steps are so small that calling them costs more than running them",
        "Run many steps per call: compile(steps_per_execution=N), or loop inside the tf.function.",
    ),
    Kind(
        "missing-prefetch",
        "STK301",
        "input",
        "The input pipeline does not prefetch",
        "End the pipeline with .prefetch(tf.data.AUTOTUNE).",
    ),
    Kind(
        "map-without-parallel-calls",
        "STK302",
        "input",
        "A dataset map runs on one thread",
        "Pass num_parallel_calls=tf.data.AUTOTUNE to map.",
    ),
    Kind(
        "python-input-pipeline",
        "STK303",
        "input",
        "The input comes from Python: one thread, under the GIL",
        "Read and transform with tf.data ops instead of from_generator, py_function or numpy_function.",
    ),
    Kind(
        "map-before-batch",
        "STK304",
        "input",
        "A cheap map runs once per element instead of once per batch",
        "Batch first, then map a vectorised function over the batches.",
    ),
    Kind(
        "cache-after-random",
        "STK305",
        "input",
        "The cache freezes random augmentation or order",
        "Move cache() before the random map or shuffle.",
    ),
    Kind(
        "shuffle-after-batch",
        "STK306",
        "input",
        "Batches are shuffled, not examples",
        "Shuffle before batch().",
    ),
    Kind(
        "large-constant-dataset",
        "STK307",
        "input",
        "A large array is embedded in the dataset as a constant",
        "Read it from files (TFRecord, np.memmap through a reader) or feed it by index.",
    ),
    Kind(
        "input-starved",
        "STK308",
        "input",
        "The step waits for the input pipeline",
        "Make the slow stage parallel, vectorise it, or cache its result; stoker.tune(ds) tries that, and says what it "
        "gains.",
    ),
    Kind(
        "iterator-teardown",
        "STK309",
        "teardown",
        "A new iterator every time round: deleting the old one holds the program up",
        "Iterate once over dataset.repeat(epochs), or switch tf.data's autotuner off for this pipeline "
        "(options.autotune.enabled = False): deleting an iterator waits for it.",
    ),
    Kind(
        "legacy-loss-scaling",
        "STK401",
        "compute",
        "Loss-scaling calls that Keras 3 removed",
        "Use LossScaleOptimizer.scale_loss; apply() unscales the gradients.",
    ),
    Kind(
        "float64-compute",
        "STK402",
        "compute",
        "The model computes in float64",
        "Cast the input to float32.",
    ),
    Kind(
        "no-mixed-precision",
        "STK403",
        "compute",
        "The device has fast half precision and the model does not use it",
        "Set keras.mixed_precision.set_global_policy('mixed_float16') or 'mixed_bfloat16'.",
    ),
    Kind(
        "logits-softmax-float16",
        "STK404",
        "compute",
        "Softmax or loss is computed in float16",
        "Give the last layer dtype='float32'.",
    ),
    Kind(
        "unscaled-batch",
        "STK405",
        "compute",
        "The global batch was not scaled by the number of replicas",
        "Multiply the batch size by strategy.num_replicas_in_sync.",
    ),
    Kind(
        "predict-in-loop",
        "STK501",
        "dispatch",
        "predict() is called for a few rows at a time in a loop",
        "Call predict() once on all rows, or model(x) inside a tf.function.",
    ),
    Kind(
        "unnormalized-input",
        "STK502",
        "compute",
        "Raw 0..255 pixels or unscaled columns go into the model",
        "Scale them: a Rescaling or Normalization layer.",
    ),
    Kind(
        "string-labels",
        "STK503",
        "compute",
        "Labels are strings",
        "Map them to integers once with StringLookup.",
    ),
    Kind(
        "wrong-crossentropy",
        "STK504",
        "compute",
        "Loss, last activation and labels do not fit together",
        "Use from_logits=True without a softmax, and the sparse loss for integer labels.",
    ),
    Kind(
        "no-validation-data",
        "STK505",
        "compute",
        "fit() has no validation data",
        "Pass validation_data or validation_split.",
    ),
    Kind(
        "checkpoint-in-loop",
        "STK506",
        "checkpoint",
        "The model is saved so often that saving slows the run down",
        "Save every N steps or minutes, or once an epoch.",
    ),
    Kind(
        "straggler",
        "STK601",
        "communication",
        "One worker is slower than the others, and all wait for it",
        "Look at what it does longer than the others: its input, its machine, what only the chief does.",
    ),
    Kind(
        "many-small-collectives",
        "STK602",
        "communication",
        "A step exchanges with the other workers many times, a little each time",
        "Exchange once a step: all gradients in one all_reduce call, metrics with them; stoker.fit does.",
    ),
    Kind(
        "unsharded-input",
        "STK603",
        "input",
        "Every worker reads the whole dataset",
        "Give each worker its part: dataset.shard(size, rank) before shuffle, or a reader of stoker.data.",
    ),
)

KINDS = {kind.slug: kind for kind in _KINDS}
BY_CODE = {kind.code: kind for kind in _KINDS}
