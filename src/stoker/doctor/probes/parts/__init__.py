"""What each probe measures: one frozen dataclass per probe, of plain values, with its own tables of the record.

| module | the parts of |
|---|---|
| tallies | `host_sync`, `transfer`, `checkpoints`: counts and times by the user's line |
| functions | `retrace` and `graph_calls`: functions that were traced and called |
| eager | `eager_ops` |
| steps | `steps`: the steps and the stepping phase |
| input | `input_wait`: pipelines, and what the tuner did |
| keras | `keras_loop`: callbacks, `fit` and `predict` |
| windows | `profiler_windows`: the sums over the profiler's windows |
| device | `device`: the device, its memory, its counters |
| memory | `memory_book`: who owned the devices' memory at the peak |
| environment | `environment`: the machine and its variables |

Stalls import these modules, and `stoker check` loads every stall. So these modules import neither TensorFlow, nor a
probe, nor `stoker.records` at their top. `doctor/probes/measurements.py` says what a part is.
"""
