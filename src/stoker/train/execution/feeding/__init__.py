"""Data on its way into the step: the caller's data as feeds that give batch `i` inside the graph.

| module | subject |
|---|---|
| sources | the data given to `fit` and `evaluate`, read by Keras' own adapters |
| memory | how much of it may lie on the device |
| resident, streamed | rows on the device; pipelines, distributed datasets and rows in host memory |
| iterator_state | the place in a stream, so that a resumed run continues there |
"""
