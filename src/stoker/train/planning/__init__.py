"""How to run, decided by measuring: resident or streamed, XLA or not, in how many parts; and earlier decisions.

| module | subject |
|---|---|
| plan | a plan, as decided or as given with `plan=` |
| decide | the decision; its thresholds are at the top |
| choices | choices made by measuring, remembered under `.stoker/plans/` |
| trials | trials of XLA, which restore the state and allow for busy cores |
| memory, parts | the fewest parts of a batch that fit into memory, measured; whether to cut it at all |
| largest_batch | the error for a batch that does not fit, with one that does |

XLA rounds differently, so timing decides about it only once. Whatever cannot change a bit may depend on the clock.
"""
