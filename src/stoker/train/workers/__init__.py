"""Training on several devices and in several processes: what replicas and a job's workers have in common.

| module | subject |
|---|---|
| strategy | `stoker.strategy()`: the strategy that fits the environment |
| group | the workers of a job: who they are, how they agree before a call, how they add up values |
| patience | how long a worker waits for the others |
| tracing | what Keras does differently on a replica while a step is traced: losses, random draws |
| shares | which rows a worker reads, from arrays, pipelines, a tf.data service or a distributed dataset |
| copies | saving and restoring a variable that has a copy on every device |
| leaving | a worker that is asked to leave: all save the same step and end with exit code 75 |

A job's workers run the same program on the same data. They must run the same steps in the same order, or they wait for
each other for ever. So one worker decides whatever depends on a clock, a signal or a callback, and all agree on it.
"""
