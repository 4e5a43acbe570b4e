"""The price of a finding: the recorded steps run again as a model, with one cause taken out.

| module | subject |
|---|---|
| program, pieces, feeding | a record as something that can be replayed: pieces of work, and the input |
| simulation | the replay: a host thread, a device, a copy engine, an input pipeline |
| claims | what of a step is a finding's own, and so what its repair can gain at most |
| repairs, call_repairs, input_repairs | what a program is like once a finding is repaired |
| calibration | how far off prices were where a repair was measured, kind by kind |
| tuner_gain | what the tuner would gain for a starved step |
| prices | a price for each finding, for all together, and the order |
| scaling | the same program on other devices, batches, replicas |
| fleet | a job of many workers: stragglers, failures, checkpoints |
"""
