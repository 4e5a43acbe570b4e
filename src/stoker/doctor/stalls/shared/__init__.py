"""What several stalls have in common: what a detector yields, and how families of stalls are found and repaired.

| module | subject |
|---|---|
| draft | a finding in the making, and when it is worth making |
| eager_work | ops dispatched one by one, by the function that holds the tape they belong to |
| retraces | functions that are traced again |
| starved_input | pipelines that keep the step waiting, and what each of them is slowed by |
| as_graph, input_repair | how eager work and a slow input are repaired |
"""
