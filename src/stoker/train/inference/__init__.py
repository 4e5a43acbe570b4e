"""`stoker.predict` and `stoker.evaluate`: many batches in one compiled call.

| module | subject |
|---|---|
| predict | the verb |
| evaluation | one evaluation with its callbacks: of `evaluate`, of a trainer, of every validation |
| inputs | the data given to predict: arrays cut into batches, or a tf.data pipeline |
| tracked | an evaluation or a prediction in the store |
| batch_runs | predict: many batches in one call; a pass over the data; its callbacks |
"""
