"""What training and inference share: data on its way into compiled loops, the loops and their one cache.

| module | subject |
|---|---|
| feeding/ | what the caller gave, as feeds: rows on the device, streams; where in them a pass is |
| feed, loop | where batch `i` comes from, inside the graph; many steps in one compiled call |
| lifting | variables that a step makes while it is traced |
| trivial_products | products with 1 taken out of a traced step, which keep TensorFlow from fusing it as Keras' is |
| kept, staleness | what was traced of a model, kept on it for as long as it matches the model |
| fused_parts, fused_adam, fused_means, fused_normalization | parts of a step that TensorFlow has one kernel for |
| replaced_calls | layers whose `call` is another one while a step is traced |
| fused_update | the optimizer's update, compiled where the step cannot be |
| keras_step, batch_function | a Keras model's own steps as loops; one batch of any number of rows |
| epoch_steps, call_length, stretch | which steps an epoch has; how many a call runs; both together, call by call |
| model_kinds | which models can be run here |
| own_methods | a model's own `fit`, `evaluate` and `predict`, called, with Stoker's in place of Keras' |
| hooks | Keras' callbacks, and which of them want every batch |
| structures | nested data taken apart and put together |
"""
