"""Data on its way into the step: the caller's data as feeds that give batch `i` inside the graph.

| module | subject |
|---|---|
| sources | what `fit` and `evaluate` were given, read by Keras' own adapters |
| memory | how much of it may lie on the device |
| resident, streamed | rows on the device; pipelines, distributed datasets and rows in host memory |
| iterator_state | where a stream is, so that a resumed run goes on there |
"""
