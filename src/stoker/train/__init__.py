"""Training at the speed of the compiled loop.

    history = stoker.fit(model, x, y, epochs=10)    # as `model.fit`, many steps in one compiled call
    history.plan                                    # how it ran, and why
    predictions = stoker.predict(model, x)          # as `model.predict`
    scores = stoker.evaluate(model, x, y)           # as `model.evaluate`

| module | subject |
|---|---|
| fit | `stoker.fit`: the epochs, the callbacks, the history |
| arguments | what `fit` was given, as feeds |
| feeds | where batch `i` comes from, inside the graph: resident on the device, or streamed |
| loop | many steps in one compiled call |
| pace | which steps an epoch has: passes over the data, `steps_per_epoch`, running out |
| plan, decide, memory_of_plans | how to run, decided by measuring, remembered |
| snapshot | the state of a step's variables, taken and put back |
| hooks, progress | callbacks, and the bar |
| predict, evaluate | `stoker.predict` and `stoker.evaluate` |
| compiled, staleness | their traced steps, kept on the model for as long as they say what it says |
| rows, streams, structures | what they were given: arrays cut into batches, or a tf.data pipeline |
| batch_loops, batch_runs, inference_hooks | many batches in one call; a pass over the data; its callbacks |

This package imports TensorFlow and Keras; `import stoker` does not import this package.
"""
