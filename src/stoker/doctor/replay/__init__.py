"""A run in a form that can be replayed: steps made of pieces of work, and repairs that change them.

| module | subject |
|---|---|
| pieces | a piece of work of the host, and sums over them |
| program | everything the replay knows of a run, including its input |
| simulation | the replay: a host thread, a device, an input pipeline |
| repair | which pieces of a step belong to a stall, and what a program is like without them |

`doctor/pricing` makes programs from records and replays them; each stall (`doctor/stalls`) brings its own repair.
Nothing here reads a record, so that loading the stalls stays quick.
"""
