"""Training at the speed of the compiled loop.

    history = stoker.fit(model, x, y, epochs=10)    # as `model.fit`, many steps in one compiled call
    history.plan                                    # how it ran, and why

| module | subject |
|---|---|
| fit | `stoker.fit`: the epochs, the callbacks, the history |
| arguments | what `fit` was given, as feeds |
| feeds | where batch `i` comes from, inside the graph: resident on the device, or streamed |
| loop | many steps in one compiled call |
| pace | which steps an epoch has: passes over the data, `steps_per_epoch`, running out |
| plan, decide, memory_of_plans | how to run, decided by measuring, remembered |
| snapshot | the state of a step's variables, taken and put back |
| checkpoint | `stoker.Checkpoint`: where, how often, how many |
| saver, checkpoint_writer | copies the variables, writes in the background, brings them back |
| checkpoint_files, checkpoint_directory, packing | files that appear whole; their order and pruning; trees of values |
| state, callback_state, iterator_state | what a step changes, what callbacks remember, where a pipeline is |
| hooks, progress | callbacks, and the bar |

This package imports TensorFlow and Keras; `import stoker` does not import this package.
"""
