"""From measurements to findings: one module per subject, each a pure function from measurements to drafts.

    ended = record(facts, session.measurements(), "ended", exit_code=0)

| module | subject |
|---|---|
| ledger | raw totals folded into the accounts of the record |
| findings, draft | all detectors in a row; what a detector yields, and when it is worth yielding |
| syncs, copies, eager, graphs, inputs, keras, checkpoints, collectives | the detectors |
| excerpts, timeline | the user's source around findings; the kept windows of spans |
| record | all of it as one `Record` |
| jobs | the records of a job's workers as one |
| comparison, noise | which of two sides of runs is faster, and whether the noise allows a verdict |

What a loss is: a finding has `seconds` (what it took) and `lost_s` (what the run would have been spared). For a sync
they differ: waiting for useful work is not a loss, the device's idle gap behind it is; per read the loss is the
smaller of the wait and the gap between the last sync and the next dispatch.
"""
