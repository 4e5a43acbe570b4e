"""From measurements to a record: the ledger, and what every stall's detector found.

    ended = record(facts, session.measurements(), "ended", exit_code=0)

| module | subject |
|---|---|
| ledger | raw totals folded into the accounts of the record |
| findings | what every stall finds (`doctor/stalls`), costliest first |
| excerpts, timeline | the user's source around findings; the windows of spans |
| record | all of it as one `Record` |
| jobs | the records of a job's workers as one |
| comparison, noise | which of two sides of runs is faster, and whether the noise allows a verdict |

What a loss is: a finding has `seconds` (how long it took) and `lost_s` (how much of that the run would be spared). For
a sync they differ: waiting for useful work is not a loss, but the idle gap of the device after it is. The loss per read
is the smaller of the wait and the gap between the last sync and the next dispatch.
"""
