"""From measurements to a record: the ledger, and what every stall's detector found.

    ended = record(facts, session.measurements(), "ended", exit_code=0)

| module | subject |
|---|---|
| ledger | raw totals folded into the accounts of the record |
| findings | what the detector of every stall (`doctor/stalls`) found, costliest first |
| excerpts, timeline | the user's source around findings; the windows of spans |
| record | the whole run as one `Record` |
| jobs | the records of a job's workers, merged into one |
| comparison, noise | which of two sides of runs is faster, and whether the noise allows a verdict |
| other_work | how much of the machine other programs used |

A finding has `seconds` (how long it took) and `lost_s` (how much of that time the run would save without it). For a
sync the two differ: waiting for useful work is not a loss, but the idle gap of the device after it is. The loss per
read is the smaller of the wait and the gap between the last sync and the next dispatch.
"""
