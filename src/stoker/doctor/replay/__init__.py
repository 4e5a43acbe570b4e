"""A run as something that can run again: steps made of pieces of work, and repairs that change them.

| module | subject |
|---|---|
| pieces | a piece of work of the host, and sums over them |
| program | everything the replay knows of a run, its input among it |
| simulation | the replay: a host thread, a device, a copy engine, an input pipeline |
| repair | what of a step is a stall's own, and what a program is like without it |

`doctor/pricing` makes programs from records and replays them; each stall (`doctor/stalls`) brings its own repair.
Nothing here reads a record, so that loading the stalls stays quick.
"""
