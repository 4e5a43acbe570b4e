"""Probes, which attach to TensorFlow and Keras from outside: one file per subject.

Each probe patches a few functions, charges time to an account of the `Recorder`, and tallies what it saw by the user's
line. On request, it returns its findings as its part of the `Measurements`. `session.Session` holds all probes.

| module | subject |
|---|---|
| session | all probes of one run, attached right after the program imports TensorFlow and Keras |
| measurements, parts/ | what the probes know at one moment: a part from each, plain values that stalls read |
| pipelines | tf.data pipelines as plain values |
| import_watch | noticing the imports of TensorFlow and Keras |
| probe | the base of all probes: patches that are removed if they fail |
| recorder | the running books: one sum per account, one tally per site |
| spans, steps, loop_turns | a few windows kept span by span; what counts as a step; turns of the user's loops |
| pauses, stretches | when measuring pauses; estimating a pause from the measured stretch of steps before it |
| host_sync, transfer | tensors read back; host data copied in |
| eager_ops, graph_calls, retrace | ops run one by one; calls of compiled functions; traces and their causes |
| input_wait, checkpoints, keras_loop | tf.data; saving and loading; `fit`, `evaluate`, `predict` and their callbacks |
| profiler_windows, profiler_trace, tensorflow_events | windows of TensorFlow's own profiler: sums, and a trace |
| exchange_meter | how long a worker's compiled calls waited: a worker with peers has no windows |
| device, memory, environment | the device and its driver; memory over time; machine, build and variables |
| memory_book | windows that show every allocation of a device with its owner |
| held_data | data that the program holds without need |

The recorder keeps sums, one per account, and tallies, one per site, so that memory does not grow with the run. Spans
are kept only for a few windows of consecutive steps, for the replay and the timeline. The host's time is exact, except
for programs with short steps under `stoker run`, whose measuring pauses most of the time (pauses.py). No Python hook
can see *inside* a compiled function. Windows of TensorFlow's profiler show the proportions (kernels, waiting for input,
starting the graph), by which `diagnosis.ledger` divides the total.

Rules for probes:

- A fault in a probe must not reach the program: measuring code runs through `Probe.call_safely`. If it fails, the probe
  takes its patches out and the report says so once. A broad `except` is right nowhere else.
- The wrapped call runs exactly once, with its arguments and its exception untouched.
- Nothing of the program is kept alive: text and numbers are stored, not tensors or functions.
- A hot path (an op, a call) looks at the stack rarely; a rare one may look every time.
- A patch on a hot path is `pausable`: it is out while measuring pauses, and `Probe.list_growing` names what it
  counts, so that it can be estimated. A patch on what happens rarely is never out.
- Wrappers count as frames of the framework (`attach.patching.mark_as_framework`), so that the traceback filters of
  TensorFlow and Keras leave them out.
"""
