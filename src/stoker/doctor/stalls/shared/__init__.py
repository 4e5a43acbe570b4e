"""Shared parts of stalls: what a detector yields, and how families of stalls are found and repaired.

| module | subject |
|---|---|
| draft | an unfinished finding, and when it is worth reporting |
| eager_work | ops dispatched one by one, grouped by the function that holds their tape |
| retraces | functions that are traced again |
| starved_input | pipelines that keep the step waiting, and what slows each of them down |
| eager_switch | switches that turn graphs off and were left on |
| as_graph, input_repair | how eager work and a slow input are repaired |
"""
