"""A forecast of a program's device memory, made before the program runs on the device.

The program's first steps run on the software GPU at a few small batches. Each run gives a trace: every allocation from
the start of the program, with its size and its owner, in order. Sizes grow with the batch; the order stays. So the
allocations of any other batch are known, and `Allocator`, which works as TensorFlow's does, computes their total.

| module | what it does |
|---|---|
| trace | `StepTrace`: the allocations of one run, as the program's process hands them to Stoker's |
| child_request | what the program's process is asked to do |
| child | the program's process: the software GPU, the hooks, the program, the trace |
| batch_place, batch_name | where a program sets its batch: found by one start or given by name; and how it is changed |
| stepping | counts the program's training steps, and ends it after a few |
| changes | mixed precision, another optimizer, gradient accumulation: made in the program's process |
| starting | starts the process and reads what it leaves |
| matching | which allocation of one trace is which of another |
| growth | from traces to the allocations at any batch |
| allocator | TensorFlow's allocator, without the memory |
| answer | the peak, the largest batch, which owners grow, and what each change would save |

`stoker memory` asks for the forecast; `doctor/report/forecast.py` shows it.
"""
