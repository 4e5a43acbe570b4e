"""The trainer: whole epochs inside one compiled call, and an exact resume after a crash.

    history = stoker.fit(model, x, y, epochs=10)    # as `model.fit`, many steps in one compiled call
    history.plan                                    # how it ran, and why
    predictions = stoker.predict(model, x)          # as `model.predict`
    scores = stoker.evaluate(model, x, y)           # as `model.evaluate`

    trainer = stoker.Trainer(model, optimizer, step)    # the same, with a step of your own

| room | subject |
|---|---|
| fit, fit_many, search, trainer, evaluate | the public verbs |
| request, tracebacks | their arguments, parsed and checked once; short tracebacks |
| explaining | why the data cannot be trained on, in one line |
| preparing | from a request to a run: which data each worker reads |
| servers | `fit` with the weights on parameter servers |
| first_look | mistakes in the model or the data, found before the first step |
| many/ | `stoker.fit_many`: many members in one loop |
| custom/ | `stoker.Trainer`: your own step in the loop |
| loop/ | one training run: its epochs, and what it shows |
| checkpoint/ | saving, and exact resume |
| planning/ | how to run: decided by measuring, and remembered |
| program, variables | the program that is trained, in three parts; every variable, by name |
| execution/ | what training and inference share: feeds, compiled loops and their cache, parts of batches, callbacks |
| inference/ | `predict`, and one evaluation |
| update/ | the pieces of an update |
| workers/ | several devices and processes: strategies, agreement, one collective a step |

Each room imports only those below it. This module imports nothing: TensorFlow comes with the module that is used.
"""
