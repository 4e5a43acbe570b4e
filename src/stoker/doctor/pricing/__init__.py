"""The price of a finding: measured, or the recorded steps run again as a model, with one cause taken out.

| module | subject |
|---|---|
| program, recorded_steps, feeding | a record made into a `replay.program.Program`: pieces of work, and the input |
| undisturbed | the run's steps without other programs on the processors |
| measured | a price of which nothing is assumed: what was timed in place of what it replaces |
| tuned | what the tuner measured of an input, as the price of the finding about it |
| verified | a price that was found by repairing the program and running it |
| claims | what of a step is a finding's own, and so what its repair can gain at most |
| repairs | a program with several findings repaired, each by the repair of its stall |
| tuner_gain | what the tuner would gain for a starved step |
| prices | a price for each finding, for all together, and the order |
| ranking | which finding is listed first, and what all repairs gain at least |
| scaling | the same program on other devices, batches, replicas |
| fleet | a job of many workers: stragglers, failures, checkpoints |
"""
