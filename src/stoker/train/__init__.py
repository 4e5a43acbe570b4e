"""The trainer: whole epochs inside one compiled call, and an exact resume after a crash.

    history = stoker.fit(model, x, y, epochs=10)    # as `model.fit`, many steps in one compiled call
    history.plan                                    # how it ran, and why
    predictions = stoker.predict(model, x)          # as `model.predict`
    scores = stoker.evaluate(model, x, y)           # as `model.evaluate`

    trainer = stoker.Trainer(model, optimizer, step)    # the same, with a step of your own

| module | subject |
|---|---|
| fit, arguments | `stoker.fit`, and what it was given |
| program | what is trained: a step, and what an epoch needs around it |
| run, engine | one training run: the plan, the epochs, callbacks, validation |
| feeds, pace | where batch `i` comes from, inside the graph; which steps an epoch has |
| loop, tempo | many steps in one compiled call; how many |
| plan, decide, remembered, memory | how to run: decided by measuring, remembered |
| snapshot | the state of a step's variables, taken and put back |
| hooks, progress | callbacks, and the bar |
| checks, tracebacks | arguments that make no sense; errors without the frames between |
| trainer, trainer_program, stepping | `stoker.Trainer`: a step of your own as a program |
| parts, workings, update/ | models with their optimizers, and the pieces of an update |
| keeper, saver, checkpoint* | saving, and going on where it was |
| state, callback_state, iterator_state | what is saved |
| predict, evaluate | `stoker.predict` and `stoker.evaluate` |
| compiled, staleness | their traced steps, kept on the model for as long as they say what it says |
| rows, streams, structures | what they were given: arrays cut into batches, or a tf.data pipeline |
| batch_loops, batch_runs, inference_hooks | many batches in one call; a pass over the data; its callbacks |

Nothing is imported here: TensorFlow comes with the module that is used.
"""
