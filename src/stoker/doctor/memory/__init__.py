"""Who owns the device's memory: every byte at the peak has a line, a layer and a role.

TensorFlow's profiler reports each allocation and each deallocation of a device with its op. What was allocated before
the window began (weights, optimizer slots, resident data) is found among the living Python objects. A book combines the
two, at the moment when most memory was in use.

| module | what it does |
|---|---|
| events | allocations and deallocations, read from a window of the profiler |
| births | the lines that made layers, optimizers, variables and large tensors |
| makers | the hooks that note births, open scopes and mark eager ops |
| inventory | what is alive on the devices before a window begins |
| owners | from an op of a graph, or an eager op, to its line, layer and role |
| book | the book of a device: what is alive at the peak, and the curve of the step around it |
| exhausted | the explanation when memory runs out |
| watching | making the books from a window of the profiler; a window around one call |

What a program holds without need is found separately from the books, on any device:

| module | what it finds |
|---|---|
| reachable, growing, additions | growing lists of tensors, found by the program's names; the line that adds |
| copies | arrays that one memory holds twice, and datasets whose array is on a GPU |
| constants | arrays that became constants of a graph |
| slots | slots that an optimizer keeps for frozen variables |
| validation | what validation needs beyond training |
| held | what these modules find |

`doctor/probes/memory_book.py` decides when to take a window; `doctor/probes/held_data.py`, when to look at the
program's data. `records/memory.py` has the values of the record.
"""
