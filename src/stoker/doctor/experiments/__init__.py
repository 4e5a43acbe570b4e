"""Prices by experiment: a step of the run is recorded, rebuilt as its repair would make it, checked and timed.

| module | subject |
|---|---|
| recording | one step of each kind of step, recorded while the program runs |
| recorded_step | what a recording holds |
| saving | recorded steps in a file, for another process |
| plain_values | attributes of ops as plain data |
| marking | when each op of other steps began and ended, and so which ops a step's time belongs to |
| rebuilding | a recorded step rebuilt, op by op or as one graph |
| checking | whether the rebuilt step computes the same as the recorded one; setting and restoring variables |
| timing | ways to do a step's work, timed in turn within a budget |
| trial | what a trial is, and which recorded events are a finding's |
| trials | for each kind of repair, the step as it was and as repaired |
| fit_steps | steps of Keras' `fit`: which ops one call would run, and that call |
| compiled_calls | calls of the program's own compiled functions, repeated |
| traced_calls | the trial of functions that are traced again and again |
| host_batches | the trial of batches that the host makes at each step |
| reads | the trial of values that are computed only to be read |
| predictions | the trial of `predict` in a loop |
| laboratory | all experiments of a run, after the program has ended |

While the program runs, only `recording` and `marking` work, for a few steps. The rest happens in the same process after
the program has ended by itself, when nothing that it did can change any more. The result of an experiment is a row of
the record's table `experiments`; in the replay, `doctor/pricing` uses the row in place of its assumptions.

After a watch or a notebook's cell, the program continues (`RecordedStep.goes_on`). Then the variables are restored, and
ops that keep state anywhere else, such as random numbers in a compiled function, are not run.

A step keeps its modelled price if it cannot be rebuilt, or if the rebuilt step computes something else. So does
everything on a device that works beside the host.
"""
