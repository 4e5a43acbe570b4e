"""The doctor: why a program is slow, on which line, what that costs, and how to repair it.

    $ stoker run train.py          # measure it
    $ stoker check                 # read it
    $ stoker fix                   # repair it, and prove that the results are the same

| room | subject |
|---|---|
| stall, stalls/ | what a stall is; the patterns that lose time, one module each |
| check/ | reading source: what the code says, without TensorFlow, in many files at once |
| lsp/ | the checker inside an editor |
| fix/ | from findings to edits, verified by running |
| attach/ | how Stoker gets into a program: patches, the user's lines, what the trainer announces |
| memory/ | who owns the device's memory: allocations, their lines, layers and roles |
| probes/ | what is measured: one module for each thing |
| measure/ | one measuring session from beginning to end, and the door into the program's process |
| forecast/ | what a program will need of a device's memory, from its first steps at small batches |
| replay/ | a run as something that can run again, and what a repair changes in it |
| diagnosis/ | from measurements to a record: the ledger and the findings |
| experiments/ | what each finding costs, measured: a recorded step rebuilt as repaired, and timed |
| pricing/ | what each finding costs: the recorded steps replayed without it |
| guard/ | a sync, a copy or a retrace raises at its line |
| report/ | a record shown: console, JSON, page, trace |
| software_gpu/ | a GPU where there is none: real copies and waits, modelled time |
| pytest_plugin/ | the guard as pytest markers |
| watch, notebook | the ledger of a Keras loop and of a notebook's cell |

A measurement becomes a `Record` (`stoker.records`); everything after it, prices and reports alike, reads that record
alone, so a report can be drawn again without running the program.
"""
