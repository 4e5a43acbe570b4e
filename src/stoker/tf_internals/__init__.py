"""Every private name of TensorFlow and Keras that Stoker uses, behind functions that document what they return.

A private name is one below `tensorflow.python`, `tensorflow.core`, `tf.__internal__` or `keras.src`, or an attribute
that begins with an underscore. No other package of Stoker uses one (ruff and `tests/tf_internals` check that). To
support a new TensorFlow or Keras, run `tests/tf_internals` on it and fix what fails here.

| module | subject |
|---|---|
| versions | which TensorFlow and Keras are supported; imports neither |
| types | names for the types of NumPy, TensorFlow and Keras; imports none of them |
| startup | whether TensorFlow has read its settings; does not import it |
| eager | tensors, ops and tapes outside of graphs; the runtime's state |
| recorded_ops | eager ops: watching, repeating and building them into graphs |
| functions | `tf.function`: calls, traces, conversion by AutoGraph |
| graphs | operations, their definitions and kernels, functions inside graphs, variables and tables |
| datasets | reading the stages of `tf.data` pipelines |
| pipelines | building `tf.data` pipelines from other parts |
| iterators | `tf.data` iterators, plain and distributed |
| distribution | workers, replicas and what they exchange |
| saving | checkpoints, SavedModels and Keras files |
| profiler | TensorFlow's profiler, and the log level of its C++ side |
| devices | devices that are plugged in; how much memory each has |
| keras_training | Keras' trainer, callbacks and progress bar |
| keras_data | Keras' data adapters |
| keras_layers | layers, models and losses |
| keras_losses | losses and metrics of a compiled model, as a step is traced |
| keras_optimizers | optimizers |

A function that returns a `Place` names something to patch. Everything that the doctor uses imports inside functions, so
that a name that disappears costs one probe, not all of them.
"""

from __future__ import annotations

from typing import Any

Place = tuple[Any, str]
"""An object and the name of its attribute, as `Patches.replace` takes them."""
