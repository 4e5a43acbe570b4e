"""What training and inference share: data on its way into compiled loops, the loops, and their one cache.

| module | subject |
|---|---|
| feeding/ | the caller's data as feeds: rows on the device, streams; the place of a pass in them |
| feed, loop | where batch `i` comes from, inside the graph; many steps in one compiled call |
| data_waits | how long the steps of a call waited for their data |
| tracing | changes to a step while it is traced |
| kept_compilations | XLA's compilations, kept for later processes |
| kept | the traces of a model, kept on it for as long as they match the model |
| fused_parts, fused_layers, fused_update | parts of a step that have one kernel, or that XLA compiles by themselves |
| keras_step, batch_function | a Keras model's own steps as loops; one batch of any number of rows |
| parts, parted_step | sums over parts of a batch; Keras' training step over them, which needs less memory |
| epoch_steps, stretch | which steps an epoch has; how many a call runs, call by call |
| model_kinds | which models can run here |
| own_methods | calling a model's own `fit`, `evaluate` or `predict`, with Stoker's in place of Keras' |
| hooks | Keras' callbacks, and which of them need every batch |
"""
