"""How to run, decided by measuring: resident or streamed, XLA or not; and what was decided before.

| module | subject |
|---|---|
| plan | a plan, as decided or as given with `plan=` |
| decide | the decision; its thresholds are at the top |
| choices | choices made by measuring, remembered under `.stoker/plans/` |
| trials | XLA tried: the state before, put back after; time that others took the cores |
| largest_batch | the error for a batch that does not fit, with one that does |

XLA rounds in its own way, so the clock may decide about it only once; what cannot change a bit may follow it always.
"""
