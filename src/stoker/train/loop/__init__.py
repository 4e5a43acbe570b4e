"""One training run: its epochs, and what it shows.

| module | subject |
|---|---|
| run | from data and a program to epochs that train: the plan decided, the loop found or compiled |
| epochs | epochs of compiled calls, with callbacks, validation, history and checkpoints around them |
| validation | the held-out data, and how it is evaluated |
| effects | passing the changes of the chief's callbacks on to all workers of a job |
| tracked | the run in the store |
| progress | the bar, and the lines about plan and checkpoint |

The data and the number of steps are arguments of the compiled call, and no step is peeled off the loop. So cutting a
pass into calls never changes a bit. This lets a call's length depend on the clock, and a resume begin anywhere.
"""
