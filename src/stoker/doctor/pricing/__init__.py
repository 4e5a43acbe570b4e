"""The price of a finding: measured, or modelled by a replay of the recorded steps without one cause.

| module | subject |
|---|---|
| program, recorded_steps, feeding | turn a record into a `replay.program.Program`: pieces of work, and the input |
| undisturbed | the run's steps without other programs on the processors |
| measured | a price without assumptions: the timed repair in place of what it replaces |
| tuned | the price of a finding about an input, from the tuner's measurement |
| verified | a price found by repairing and running the program |
| claims | which part of a step belongs to a finding, and so what its repair can gain at most |
| repairs | a program with several findings repaired, each by the repair of its stall |
| tuner_gain | what the tuner would gain for a starved step |
| prices | the price of each finding and of all together, and the order of repair |
| ranking | which finding is listed first, and what all repairs gain at least |
| scaling | the same program on other devices, batches, replicas |
| fleet | a job of many workers: stragglers, failures, checkpoints |
"""
