"""The price of a finding: the recorded steps run again as a model, with one cause taken out.

| module | subject |
|---|---|
| program, recorded_steps, feeding | a record made into a `replay.program.Program`: pieces of work, and the input |
| claims | what of a step is a finding's own, and so what its repair can gain at most |
| repairs | a program with several findings repaired, each by the repair of its stall |
| tuner_gain | what the tuner would gain for a starved step |
| prices | a price for each finding, for all together, and the order |
| scaling | the same program on other devices, batches, replicas |
| fleet | a job of many workers: stragglers, failures, checkpoints |
"""
