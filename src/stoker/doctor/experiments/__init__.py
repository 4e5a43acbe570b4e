"""Prices by experiment: a step of the run is recorded, rebuilt as its repair would make it, checked and timed.

| module | subject |
|---|---|
| recording | one step of each kind of step, recorded while the program runs |
| recorded_step | what a recording holds |
| saving | recorded steps in a file, for another process |
| plain_values | attributes of ops as plain data |
| marking | when each op of other steps began and ended, so whose time a step's time is |
| rebuilding | a recorded step made again, op by op or as one graph |
| checking | whether the rebuilt step computes what the recorded one did; the variables, set and put back |
| timing | ways to do a step's work, timed in turn within a budget |
| trial | what a trial is, and which recorded events are a finding's |
| trials | for each kind of repair, the step as it was and as repaired |
| fit_steps | steps of Keras' `fit`: what one call would run of them, and that call |
| compiled_calls | calls of the program's own compiled functions, made again |
| traced_calls | the trial of functions that are traced again and again |
| host_batches | the trial of batches that are made on the host at each step |
| reads | the trial of reads: what is computed only to be read |
| predictions | the trial of `predict` in a loop |
| calls_alone | the trial of a starved step: what its calls take on a batch that is there |
| laboratory | all experiments of a run, after the program has ended |

While the program runs, only `recording` and `marking` work, for a few steps. The rest happens in the same process when
the program has ended by itself: nothing it has done can change any more. What an experiment gives is a row of the
record's table `experiments`; `doctor/pricing` puts it into the replay in place of what it would assume.

After a watch or a notebook's cell the program goes on (`RecordedStep.goes_on`). Then the variables get back the values
they had, and what keeps state anywhere else, as random numbers in a compiled function do, is not run.

A step that cannot be rebuilt, or that computes something else when it is, keeps its modelled price. So does everything
on a device that works beside the host.
"""
