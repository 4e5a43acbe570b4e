"""The inside of `stoker.Trainer`: a step of the user's own in the compiled loop.

| module | subject |
|---|---|
| step | one step, traced on a replica and run on all of them inside the step, so that the loop knows no replicas |
| in_parts | the same over the parts of a batch, added up |
| updating | the updates of a step: gradients, one sum over the replicas, and writing |
| keras_model | a compiled Keras model as a program, on one replica and on several |
| parts | the models, each with its optimizer and its update; everything kept beside them, in variables |
| program | the trainer as `loop.epochs` sees it |

A step with a bad loss sets `Halt`. From there on nothing is written until the host stops or rewinds, after the call.
"""
