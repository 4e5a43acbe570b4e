"""`stoker.predict` and `stoker.evaluate`: many batches in one compiled call.

| module | subject |
|---|---|
| predict, evaluate | the two verbs |
| eligibility | which models Keras has to run itself |
| evaluation | one evaluation with its callbacks: of `evaluate`, of a trainer, of every validation |
| arrays, streams | what predict was given: arrays cut into batches, or a tf.data pipeline |
| tracked | an evaluation or a prediction in the store |
| batch_loops, batch_runs, callbacks | predict: many batches in one call; a pass over the data; its callbacks |
"""
