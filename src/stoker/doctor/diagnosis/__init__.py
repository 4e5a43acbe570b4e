"""From measurements to a record: the ledger, and what every stall's detector found.

    ended = record(facts, session.measurements(), "ended", exit_code=0)

| module | subject |
|---|---|
| ledger | raw totals folded into the accounts of the record |
| findings | every stall asked what it finds (`doctor/stalls`), costliest first |
| excerpts, timeline | the user's source around findings; the kept windows of spans |
| record | all of it as one `Record` |
| jobs | the records of a job's workers as one |
| comparison, noise | which of two sides of runs is faster, and whether the noise allows a verdict |

What a loss is: a finding has `seconds` (what it took) and `lost_s` (what the run would have been spared). For a sync
they differ: waiting for useful work is not a loss, the device's idle gap behind it is; per read the loss is the
smaller of the wait and the gap between the last sync and the next dispatch.
"""
